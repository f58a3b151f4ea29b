-- Of all tenants together. What an operator has set stays; a row that says the same already is not touched, so that a worker that
-- starts does not wait for those that claim.
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, set_at, set_by)
SELECT 'workflow', :name, '*', CAST(:concurrency AS BIGINT), CAST(:rate AS BIGINT), CAST(:per_us AS BIGINT), unstuck_now(), :by
 WHERE NOT EXISTS (SELECT 1
                     FROM unstuck_limits
                    WHERE kind = 'workflow' AND name = :name AND tenant = '*'
                      AND (set_by <> :by
                           OR (COALESCE(concurrency, -1) = COALESCE(CAST(:concurrency AS BIGINT), -1)
                               AND COALESCE(rate, -1) = COALESCE(CAST(:rate AS BIGINT), -1)
                               AND COALESCE(per_us, -1) = COALESCE(CAST(:per_us AS BIGINT), -1))))
ON CONFLICT (kind, name, tenant) DO UPDATE
   SET concurrency = excluded.concurrency, rate = excluded.rate, per_us = excluded.per_us, set_at = excluded.set_at
 WHERE unstuck_limits.set_by = excluded.set_by
