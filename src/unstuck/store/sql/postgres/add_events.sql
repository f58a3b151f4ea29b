INSERT INTO unstuck_events (job, n, at, kind, run, token, data)
SELECT job, n, at, kind, run, token, data
  FROM json_to_recordset(CAST(:rows AS json)) AS r (
           job BIGINT, n BIGINT, at BIGINT, kind TEXT, run BIGINT, token BIGINT, data TEXT)
