INSERT INTO unstuck_waits (job, run, key, tenant, kind, name, address, spec, token, asked_at, until_at, answer, payload, answered_at, by)
SELECT job, run, key, tenant, kind, name, address, spec, token, asked_at, until_at, answer, payload, answered_at, by
  FROM {rows :rows AS r (
             job BIGINT, run BIGINT, key TEXT, tenant TEXT, kind TEXT, name TEXT, address TEXT, spec TEXT, token
             BIGINT, asked_at BIGINT, until_at BIGINT, answer TEXT, payload TEXT, answered_at BIGINT, by TEXT)}
