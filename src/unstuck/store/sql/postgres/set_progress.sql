INSERT INTO unstuck_progress (job, token, value, at)
SELECT job, token, progress, unstuck_now()
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, token BIGINT, progress TEXT)
ON CONFLICT (job) DO UPDATE SET token = excluded.token, value = excluded.value, at = excluded.at
