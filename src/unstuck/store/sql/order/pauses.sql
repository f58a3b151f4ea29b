-- Pauses.

-- name: set_pause
INSERT INTO unstuck_pauses (kind, name, tenant, since_at, until_at, appointed, by, reason)
VALUES (:kind, :name, :tenant, unstuck_now(), COALESCE(CAST(:appointed AS BIGINT) + unstuck_ahead(), CAST(:until_at AS BIGINT)),
        CAST(:appointed AS BIGINT), :by, :reason)
ON CONFLICT (kind, name, tenant) DO UPDATE
   SET since_at = excluded.since_at, until_at = excluded.until_at, appointed = excluded.appointed, by = excluded.by, reason = excluded.reason
RETURNING kind, name, tenant, since_at, until_at, by, reason

-- name: drop_pause
-- Whether it was still in force is decided by the caller: SQLite 3.40 takes `until_at IS NULL` for false in a RETURNING clause.
DELETE FROM unstuck_pauses
 WHERE kind = :kind AND name = :name AND tenant = :tenant
RETURNING kind, name, tenant, since_at, until_at, by, reason, unstuck_now() AS now

-- name: pauses
SELECT kind, name, tenant, since_at, until_at, by, reason
  FROM unstuck_pauses
 WHERE (until_at IS NULL OR until_at > (SELECT unstuck_now()))
   AND (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*'))
 ORDER BY since_at, kind, name, tenant

-- name: ended_target_pauses
SELECT t.id AS target, (SELECT unstuck_now()) AS now
  FROM unstuck_pauses p
  JOIN unstuck_targets t ON t.tenant = p.tenant AND t.name = p.name
 WHERE p.kind = 'target' AND p.until_at <= (SELECT unstuck_now()) AND t.id > :after
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'target' AND q.item = t.id)
 ORDER BY t.id
 LIMIT :batch

-- name: drop_ended_target_pauses
-- Looks again under the lock: a pause may have been prolonged meanwhile.
DELETE FROM unstuck_pauses
 WHERE kind = 'target' AND until_at <= (SELECT unstuck_now())
   AND (name, tenant) IN (SELECT t.name, t.tenant FROM {list :targets AS r (id BIGINT)} {by_key unstuck_targets AS t ON t.id = r.id})
RETURNING kind, name, tenant, since_at, until_at, by, reason

-- name: ended_pauses
SELECT kind, name, tenant FROM unstuck_pauses WHERE kind <> 'target' AND until_at <= (SELECT unstuck_now()) ORDER BY until_at, kind, name, tenant
 LIMIT :batch OFFSET :past

-- name: drop_ended_pauses
-- Those of targets go with a look at their lines: drop_ended_target_pauses. Looks again under the lock; what somebody holds comes later.
DELETE FROM unstuck_pauses
 WHERE (kind, name, tenant) IN (SELECT p.kind, p.name, p.tenant
                                  FROM {rows :rows AS r (kind TEXT, name TEXT, tenant TEXT)}
                                  {by_key unstuck_pauses AS p ON p.kind = r.kind AND p.name = r.name AND p.tenant = r.tenant
                                          AND p.until_at <= (SELECT unstuck_now()) FOR UPDATE SKIP LOCKED})
RETURNING kind, name, tenant, since_at, until_at, by, reason

-- name: wrong_pauses
SELECT 1 FROM unstuck_pauses WHERE until_at <> appointed + (SELECT unstuck_ahead()) LIMIT 1

-- name: move_appointed_pauses
UPDATE unstuck_pauses
   SET until_at = appointed + unstuck_ahead()
 WHERE (kind, name, tenant) IN (SELECT p.kind, p.name, p.tenant
                                  FROM unstuck_pauses p
                                 WHERE p.until_at <> p.appointed + (SELECT unstuck_ahead())
                                 ORDER BY p.kind, p.name, p.tenant {lock FOR NO KEY UPDATE SKIP LOCKED})
