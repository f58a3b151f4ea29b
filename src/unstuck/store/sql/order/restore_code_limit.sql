-- In the same row: the starts that its rate has counted count on.
UPDATE unstuck_limits
   SET concurrency = code_concurrency, rate = code_rate, per_us = code_per_us, max_queued = NULL, set_at = unstuck_now(), set_by = :by
 WHERE kind = :kind AND name = :name AND tenant = :tenant AND set_by <> :by AND (code_concurrency IS NOT NULL OR code_rate IS NOT NULL)
RETURNING kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by
