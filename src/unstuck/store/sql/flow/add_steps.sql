-- Their running rows are locked by this transaction.
INSERT INTO unstuck_steps (job, name, ordinal, run, token, at, duration_ms, result)
SELECT r.job, r.name, r.ordinal, a.run, a.token, unstuck_now(), r.duration_ms, r.result
  FROM {rows :rows AS r (job BIGINT, name TEXT, ordinal BIGINT, duration_ms BIGINT, result TEXT)}
  {by_key unstuck_running AS a ON a.job = r.job}
 WHERE TRUE
 ORDER BY r.job, {binary r.name}, r.ordinal
ON CONFLICT (job, name, ordinal) DO NOTHING
