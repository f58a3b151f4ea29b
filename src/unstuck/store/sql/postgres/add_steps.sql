-- Their running rows are locked by this transaction.
INSERT INTO unstuck_steps (job, name, ordinal, run, token, at, duration_ms, result)
SELECT r.job, r.name, r.ordinal, a.run, a.token, unstuck_now(), r.duration_ms, r.result
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, name TEXT, ordinal BIGINT, duration_ms BIGINT, result TEXT)
 CROSS JOIN LATERAL (SELECT run, token FROM unstuck_running WHERE job = r.job LIMIT 1) AS a
 ORDER BY r.job, r.name COLLATE "C", r.ordinal
ON CONFLICT (job, name, ordinal) DO NOTHING
