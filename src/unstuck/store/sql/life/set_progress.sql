INSERT INTO unstuck_progress (job, token, value, at)
SELECT job, token, progress, unstuck_now()
  FROM {rows :rows AS r (job BIGINT, token BIGINT, progress TEXT)}
 WHERE TRUE
ON CONFLICT (job) DO UPDATE SET token = excluded.token, value = excluded.value, at = excluded.at
