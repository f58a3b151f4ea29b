INSERT INTO unstuck_body_marks (job, target, worker, pid, since_at, reason)
SELECT job, target, worker, pid, since_at, reason
  FROM {rows :rows AS r (job BIGINT, target BIGINT, worker BIGINT, pid BIGINT, since_at BIGINT, reason TEXT)}
 WHERE TRUE
ON CONFLICT (job) DO UPDATE
   SET target = excluded.target, worker = excluded.worker, pid = excluded.pid, since_at = excluded.since_at,
       reason = excluded.reason
