-- The open attempts of one claim, in claim order.
SELECT j.id, r.token, j.uid, r.run, j.tenant, j.queue, j.workflow, j.route, j.rank, j.payload, j.policy, j.alone, j.created_at,
       j.failures, j.losses, j.suspects, j.target IS NOT NULL AS has_target
  FROM unstuck_running r
  JOIN unstuck_jobs j ON j.id = r.job
 WHERE r.worker = :worker AND r.claim = :claim
 ORDER BY j.rank, j.id
