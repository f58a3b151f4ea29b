-- Limits that stand in the code.

-- name: wrong_code_limits
-- Of workflows whose limits by code, of all their jobs or of each limit key, are not what the version says that the doors go by (see `workflow`): what it says.
-- Looked up row by row: for a join SQLite reads all limits into a filter, once it knows that there are many.
SELECT s.kind, s.name, s.tenant, s.concurrency, s.rate, s.per_us
  FROM (SELECT form.kind, v.name, v.tenant,
               CASE form.kind WHEN 'workflow' THEN v.concurrency ELSE v.key_concurrency END AS concurrency,
               CASE form.kind WHEN 'workflow' THEN v.rate ELSE v.key_rate END AS rate,
               CASE form.kind WHEN 'workflow' THEN v.per_us ELSE v.key_per_us END AS per_us
          FROM (SELECT w.*,
                       ROW_NUMBER() OVER (PARTITION BY w.name, w.tenant
                                          ORDER BY w.is_live DESC, w.registered_at DESC, w.seen_at DESC, w.code_version DESC) AS place
                  FROM unstuck_versions w) AS v
         CROSS JOIN (SELECT 'workflow' AS kind UNION ALL SELECT 'workflow_key') AS form
         WHERE v.place = 1) AS s
 WHERE CASE WHEN s.concurrency IS NULL AND s.rate IS NULL AND s.per_us IS NULL
            THEN EXISTS (SELECT 1 FROM unstuck_limits l WHERE l.kind = s.kind AND l.tenant = s.tenant AND l.name = s.name)
            ELSE TRUE END
   AND NOT EXISTS (SELECT 1
                     FROM unstuck_limits l
                    WHERE l.kind = s.kind AND l.tenant = s.tenant AND l.name = s.name
                      AND (COALESCE(l.code_concurrency, -1), COALESCE(l.code_rate, -1), COALESCE(l.code_per_us, -1))
                          = (COALESCE(s.concurrency, -1), COALESCE(s.rate, -1), COALESCE(s.per_us, -1))
                      AND (l.set_by <> :by
                           OR (COALESCE(l.concurrency, -1), COALESCE(l.rate, -1), COALESCE(l.per_us, -1))
                              = (COALESCE(s.concurrency, -1), COALESCE(s.rate, -1), COALESCE(s.per_us, -1))))
 ORDER BY s.kind, s.name, s.tenant

-- name: set_code_limit
-- Of all tenants together, or of the one whose worker says so. What an operator has set stays in force, with the code's beside it; a row that says the same already is not
-- touched, so that a worker that starts does not wait for those that claim.
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, code_concurrency, code_rate, code_per_us, set_at, set_by)
SELECT :kind, :name, :tenant, said.concurrency, said.rate, said.per_us, said.concurrency, said.rate, said.per_us, unstuck_now(), :by
  FROM (SELECT CAST(:concurrency AS BIGINT) AS concurrency, CAST(:rate AS BIGINT) AS rate, CAST(:per_us AS BIGINT) AS per_us) AS said
 WHERE NOT EXISTS (SELECT 1
                     FROM unstuck_limits l
                    WHERE l.kind = :kind AND l.name = :name AND l.tenant = :tenant
                      AND COALESCE(l.code_concurrency, -1) = COALESCE(said.concurrency, -1)
                      AND COALESCE(l.code_rate, -1) = COALESCE(said.rate, -1)
                      AND COALESCE(l.code_per_us, -1) = COALESCE(said.per_us, -1)
                      AND (l.set_by <> :by
                           OR (COALESCE(l.concurrency, -1) = COALESCE(said.concurrency, -1)
                               AND COALESCE(l.rate, -1) = COALESCE(said.rate, -1)
                               AND COALESCE(l.per_us, -1) = COALESCE(said.per_us, -1))))
ON CONFLICT (kind, name, tenant) DO UPDATE
   SET code_concurrency = excluded.code_concurrency, code_rate = excluded.code_rate, code_per_us = excluded.code_per_us,
       concurrency = CASE WHEN unstuck_limits.set_by = excluded.set_by THEN excluded.concurrency ELSE unstuck_limits.concurrency END,
       rate = CASE WHEN unstuck_limits.set_by = excluded.set_by THEN excluded.rate ELSE unstuck_limits.rate END,
       per_us = CASE WHEN unstuck_limits.set_by = excluded.set_by THEN excluded.per_us ELSE unstuck_limits.per_us END,
       set_at = CASE WHEN unstuck_limits.set_by = excluded.set_by THEN excluded.set_at ELSE unstuck_limits.set_at END

-- name: restore_code_limit
-- In the same row: the starts that its rate has counted count on.
UPDATE unstuck_limits
   SET concurrency = code_concurrency, rate = code_rate, per_us = code_per_us, max_queued = NULL, set_at = unstuck_now(), set_by = :by
 WHERE kind = :kind AND name = :name AND tenant = :tenant AND set_by <> :by AND (code_concurrency IS NOT NULL OR code_rate IS NOT NULL)
RETURNING kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by

-- name: free_code_limit
-- Locked if that needs no waiting. No row: there is none that could be held.
SELECT (SELECT 1 FROM (SELECT 1 FROM unstuck_limits WHERE kind = :kind AND name = :name AND tenant = :tenant {lock FOR UPDATE SKIP LOCKED}) AS free) IS NOT NULL AS is_free
  FROM unstuck_limits
 WHERE kind = :kind AND name = :name AND tenant = :tenant

-- name: forget_code_limit
-- An operator's own stays; when it is lifted there is nothing to come back.
UPDATE unstuck_limits
   SET code_concurrency = NULL, code_rate = NULL, code_per_us = NULL
 WHERE kind = :kind AND name = :name AND tenant = :tenant AND set_by <> :by AND (code_concurrency IS NOT NULL OR code_rate IS NOT NULL)

-- name: drop_code_limit
DELETE FROM unstuck_limits WHERE kind = :kind AND name = :name AND tenant = :tenant AND set_by = :by
