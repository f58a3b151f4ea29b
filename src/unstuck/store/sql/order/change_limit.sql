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
