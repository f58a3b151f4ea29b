INSERT INTO unstuck_timers (kind, due_at, job, route, appointed)
SELECT kind, due_at, job, route, appointed
  FROM {rows :rows AS r (kind TEXT, due_at BIGINT, job BIGINT, route BIGINT, appointed BIGINT)}
 WHERE TRUE
ON CONFLICT (kind, due_at, job) DO NOTHING
