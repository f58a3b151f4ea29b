-- Limits that people set.

-- name: limits
SELECT kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by
  FROM unstuck_limits
 WHERE CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*')
 ORDER BY kind, name, tenant

-- name: set_limit
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by)
VALUES (:kind, :name, :tenant, :concurrency, :rate, :per_us, :max_queued, unstuck_now(), :by)
ON CONFLICT (kind, name, tenant) DO UPDATE
   SET concurrency = excluded.concurrency, rate = excluded.rate, per_us = excluded.per_us, max_queued = excluded.max_queued,
       set_at = excluded.set_at, set_by = excluded.set_by
RETURNING kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by

-- name: change_limit
-- What is not said stays as it stands: by one statement, so that two who change different parts at once both have their way.
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by)
VALUES (:kind, :name, :tenant, :concurrency, :rate, :per_us, :max_queued, unstuck_now(), :by)
ON CONFLICT (kind, name, tenant) DO UPDATE
   SET concurrency = CASE WHEN CAST(:says_concurrency AS INTEGER) = 1 THEN excluded.concurrency ELSE unstuck_limits.concurrency END,
       rate = CASE WHEN CAST(:says_rate AS INTEGER) = 1 THEN excluded.rate ELSE unstuck_limits.rate END,
       per_us = CASE WHEN CAST(:says_rate AS INTEGER) = 1 THEN excluded.per_us ELSE unstuck_limits.per_us END,
       max_queued = CASE WHEN CAST(:says_max_queued AS INTEGER) = 1 THEN excluded.max_queued ELSE unstuck_limits.max_queued END,
       set_at = excluded.set_at, set_by = excluded.set_by
RETURNING kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by

-- name: drop_limit
-- What the code says is not an operator's to lift; it can be replaced.
DELETE FROM unstuck_limits WHERE kind = :kind AND name = :name AND tenant = :tenant AND set_by <> :by

-- name: has_caps
SELECT 1 AS found FROM unstuck_limits WHERE max_queued IS NOT NULL LIMIT 1

-- name: queue_caps
SELECT kind, name, tenant, max_queued
  FROM unstuck_limits
 WHERE max_queued IS NOT NULL
   AND ((kind = 'tenant' AND name IN (:tenant, '*')) OR (kind = 'queue' AND name = :queue AND tenant IN (:tenant, '*')))
