-- Above every other, whatever the clock says: a submit notices by the newest that it must look again.
INSERT INTO unstuck_workflows (name, code_version, queue, policy, max_timeout, schema, target, limit_key, doc, concurrency, rate, per_us,
                               key_concurrency, key_rate, key_per_us, redact, tenant, registered_at, seen_at)
SELECT :name, :code_version, :queue, :policy, :max_timeout, :schema, :target, :limit_key, :doc,
       CAST(:concurrency AS BIGINT), CAST(:rate AS BIGINT), CAST(:per_us AS BIGINT),
       CAST(:key_concurrency AS BIGINT), CAST(:key_rate AS BIGINT), CAST(:key_per_us AS BIGINT), :redact, :tenant, unstuck_now(),
       (SELECT CASE WHEN MAX(seen_at) >= unstuck_now() THEN MAX(seen_at) + 1 ELSE unstuck_now() END FROM unstuck_workflows)
 WHERE TRUE
ON CONFLICT (name, code_version, tenant) DO UPDATE
   SET queue = excluded.queue, policy = excluded.policy, max_timeout = excluded.max_timeout, schema = excluded.schema,
       target = excluded.target, limit_key = excluded.limit_key, doc = excluded.doc,
       concurrency = excluded.concurrency, rate = excluded.rate, per_us = excluded.per_us,
       key_concurrency = excluded.key_concurrency, key_rate = excluded.key_rate, key_per_us = excluded.key_per_us,
       redact = excluded.redact, seen_at = excluded.seen_at
