INSERT INTO unstuck_events (job, n, at, kind, run, token, data)
SELECT job, n, at, kind, run, token, data
  FROM {rows :rows AS r (job BIGINT, n BIGINT, at BIGINT, kind TEXT, run BIGINT, token BIGINT, data TEXT)}
