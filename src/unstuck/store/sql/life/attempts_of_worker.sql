-- The jobs row is locked too, because the loss is counted there: one that somebody holds is skipped and stays with its
-- worker, which is not forgotten as long as it has any.
SELECT a.job, a.token, a.claim, a.worker, a.route, a.run, a.event_count, a.claimed_at, a.started_at, a.target,
       a.request, a.request_reason, a.request_by, j.uid, j.tenant, j.workflow, j.rank, j.priority, j.started, j.policy, j.failures, j.losses, j.suspects, j.alone, j.error_type, j.error_message,
       w.name AS worker_name, w.host, w.state AS worker_state, w.reason AS worker_reason, w.beat_at, unstuck_now() AS now
  FROM unstuck_running a
  JOIN unstuck_jobs j ON j.id = a.job
  JOIN unstuck_workers w ON w.id = a.worker
 WHERE a.job {in :jobs BIGINT} AND a.worker = :worker
   {lock AND (a.target IS NULL OR a.target = ANY (CAST(:targets AS BIGINT[])))}
 ORDER BY a.job
   {lock FOR UPDATE OF a SKIP LOCKED}
   {lock FOR NO KEY UPDATE OF j SKIP LOCKED}
