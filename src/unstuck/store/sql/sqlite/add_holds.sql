INSERT INTO unstuck_holds (job, target, worker, pid, since_at, reason)
SELECT value ->> 'job', value ->> 'target', value ->> 'worker', value ->> 'pid', value ->> 'since_at', value ->> 'reason'
  FROM json_each(:rows)
 WHERE TRUE
ON CONFLICT (job) DO UPDATE
   SET target = excluded.target, worker = excluded.worker, pid = excluded.pid, since_at = excluded.since_at,
       reason = excluded.reason
