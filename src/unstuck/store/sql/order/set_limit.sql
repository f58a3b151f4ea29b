INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by)
VALUES (:kind, :name, :tenant, :concurrency, :rate, :per_us, :max_queued, unstuck_now(), :by)
ON CONFLICT (kind, name, tenant) DO UPDATE
   SET concurrency = excluded.concurrency, rate = excluded.rate, per_us = excluded.per_us, max_queued = excluded.max_queued,
       set_at = excluded.set_at, set_by = excluded.set_by
RETURNING kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by
