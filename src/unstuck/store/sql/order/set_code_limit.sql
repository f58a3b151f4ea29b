-- Of all tenants together. What an operator has set stays in force, with the code's beside it; a row that says the same already is not
-- touched, so that a worker that starts does not wait for those that claim.
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, code_concurrency, code_rate, code_per_us, set_at, set_by)
SELECT 'workflow', :name, '*', said.concurrency, said.rate, said.per_us, said.concurrency, said.rate, said.per_us, unstuck_now(), :by
  FROM (SELECT CAST(:concurrency AS BIGINT) AS concurrency, CAST(:rate AS BIGINT) AS rate, CAST(:per_us AS BIGINT) AS per_us) AS said
 WHERE NOT EXISTS (SELECT 1
                     FROM unstuck_limits l
                    WHERE l.kind = 'workflow' AND l.name = :name AND l.tenant = '*'
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
