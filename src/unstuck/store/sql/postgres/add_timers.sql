INSERT INTO unstuck_timers (kind, due_at, job)
SELECT kind, due_at, job
  FROM json_to_recordset(CAST(:rows AS json)) AS r (kind TEXT, due_at BIGINT, job BIGINT)
ON CONFLICT (kind, due_at, job) DO NOTHING
