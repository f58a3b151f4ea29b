INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
SELECT job, number, at, kind, run, token, data
  FROM {rows :rows AS r (job BIGINT, number BIGINT, at BIGINT, kind TEXT, run BIGINT, token BIGINT, data TEXT)}
