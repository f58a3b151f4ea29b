INSERT INTO unstuck_timers (kind, due_at, job, route)
SELECT kind, due_at, job, route
  FROM json_to_recordset(CAST(:rows AS json)) AS r (kind TEXT, due_at BIGINT, job BIGINT, route BIGINT)
ON CONFLICT (kind, due_at, job) DO NOTHING
