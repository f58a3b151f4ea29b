-- What people did.

-- name: add_audit
INSERT INTO unstuck_audit (at, by, verb, subject, tenant, detail, key, address)
SELECT (SELECT unstuck_now()), CAST(:by AS TEXT), CAST(:verb AS TEXT), r.subject, r.tenant, r.detail, CAST(:key AS TEXT), CAST(:address AS TEXT)
  FROM {rows :rows AS r (subject TEXT, tenant TEXT, detail TEXT)}

-- name: audit
SELECT * FROM unstuck_audit
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*'))
   AND (CAST(:with_platform AS INTEGER) = 1 OR tenant <> '*')
   AND (CAST(:verb AS TEXT) IS NULL OR verb = CAST(:verb AS TEXT) OR verb LIKE CAST(:verb AS TEXT) || '.%')
   AND (CAST(:subject AS TEXT) IS NULL OR subject = CAST(:subject AS TEXT))
   AND id < :before
 ORDER BY id DESC
 LIMIT :most

-- name: forget_audit
DELETE FROM unstuck_audit
 WHERE id {among}
       SELECT id FROM unstuck_audit WHERE at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) ORDER BY at LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}
