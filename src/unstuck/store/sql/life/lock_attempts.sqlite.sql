SELECT a.job, a.token, a.claim, a.worker, a.route, a.run, a.event_count, a.claimed_at, a.started_at, a.target,
       a.request, a.request_reason, a.request_by, j.uid, j.tenant, j.rank, j.priority, j.started, j.policy, j.failures, j.losses, j.suspects, j.alone, j.error_type, j.error_message,
       w.name AS worker_name, w.host, w.state AS worker_state, w.reason AS worker_reason, unstuck_now() AS now
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value ->> 'job' AND a.token = r.value ->> 'token' AND a.claim = r.value ->> 'claim'
  JOIN unstuck_jobs j ON j.id = a.job
  JOIN unstuck_workers w ON w.id = a.worker
 WHERE a.worker = :worker
 ORDER BY a.job
