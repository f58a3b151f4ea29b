-- While the running row is ours, nobody else changes the job's counts: only then is it safe to decide. The jobs row is locked too, because most
-- ends are written there. A target that is not there, because somebody changed the row, is nobody's to lock. What somebody else holds is skipped: whoever asks looks whether it is still open, and comes again.
SELECT a.job, a.token, a.claim, a.worker, a.route, a.run, a.event_count, a.claimed_at, a.started_at, a.target,
       a.request, a.request_reason, a.request_by, j.uid, j.tenant, j.rank, j.priority, j.started, j.policy, j.failures, j.losses, j.suspects, j.alone, j.error_type, j.error_message,
       w.name AS worker_name, w.host, w.state AS worker_state, w.reason AS worker_reason, unstuck_now() AS now
  FROM {rows :rows AS r (job BIGINT, token BIGINT, claim TEXT)}
  {sqlite CROSS} JOIN unstuck_running a ON a.job = r.job AND a.token = r.token AND a.claim = r.claim
  JOIN unstuck_jobs j ON j.id = a.job
  JOIN unstuck_workers w ON w.id = a.worker
 WHERE a.worker = :worker
   {lock AND (a.target IS NULL OR a.target = ANY (CAST(:targets AS BIGINT[])) OR NOT EXISTS (SELECT 1 FROM unstuck_targets t WHERE t.id = a.target))}
 ORDER BY a.job
   {lock FOR UPDATE OF a SKIP LOCKED}
   {lock FOR NO KEY UPDATE OF j SKIP LOCKED}
