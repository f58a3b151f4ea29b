-- Locks the jobs, not the ready rows: whoever moves a job at rest holds its jobs row.
SELECT j.id AS job, j.id AS number, j.uid, j.route, j.rank, j.available_at, j.expires_at, j.run, j.token, j.event_count, j.failures, j.losses,
       j.suspects, j.alone, j.target, j.priority, j.started, j.policy, j.error_type, j.error_message,
       CASE WHEN g.head = j.id THEN 1 ELSE 0 END AS is_head, unstuck_now() AS now
  FROM unstuck_jobs j
  LEFT JOIN unstuck_targets g ON g.id = j.target
 WHERE j.id {in :jobs BIGINT}
   {lock AND (j.target IS NULL OR j.target = ANY (CAST(:targets AS BIGINT[])))}
 ORDER BY j.id
   {lock FOR NO KEY UPDATE OF j SKIP LOCKED}
