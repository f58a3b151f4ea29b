-- The attempts that this transaction has just opened, in claim order. A payload above :most bytes is left for claimed_jobs.
SELECT j.id, r.token, r.run, j.route, j.rank, j.policy, j.alone, j.created_at, j.failures, j.losses, j.suspects, j.expires_at,
       j.target IS NOT NULL AS has_target, j.uid, j.tenant, j.queue, j.workflow,
       CASE WHEN length(CAST(j.payload AS BLOB)) <= :most THEN j.payload END AS payload
  FROM unstuck_running r
  JOIN unstuck_jobs j ON j.id = r.job
 WHERE r.worker = :worker AND r.claim = :claim
 ORDER BY j.rank, j.id
