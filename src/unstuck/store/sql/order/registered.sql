-- Of the versions there are only these: there is one more with every deploy.
SELECT f.name, f.code_version, f.queue, f.policy, f.max_timeout, f.schema, f.target, f.limit_key, f.doc, f.concurrency, f.rate, f.per_us,
       f.key_concurrency, f.key_rate, f.key_per_us, f.redact, f.tenant,
       NOT EXISTS (SELECT 1 FROM unstuck_workflows o WHERE o.name = f.name AND o.tenant = f.tenant AND o.seen_at > f.seen_at) AS is_newest
  FROM unstuck_workflows f
 WHERE f.name {in :names TEXT} AND f.code_version {in :versions TEXT} AND f.tenant {in :tenants TEXT}
