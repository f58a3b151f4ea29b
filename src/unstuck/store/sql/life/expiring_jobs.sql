-- Locks the jobs, not the timers: whoever moves a job at rest holds its jobs row. One that is busy keeps its timer.
SELECT r.due_at, r.job, j.uid, j.route, j.rank, j.available_at, j.expires_at, j.run, j.token, j.event_count, j.failures, j.losses,
       j.suspects, j.alone, j.target, j.priority, j.started, j.policy,
       CASE WHEN g.head = j.id THEN 1 ELSE 0 END AS is_head, unstuck_now() AS now
  FROM {rows :rows AS r (due_at BIGINT, job BIGINT)}
  JOIN unstuck_jobs j ON j.id = r.job
  LEFT JOIN unstuck_targets g ON g.id = j.target
 {lock WHERE (j.target IS NULL OR j.target = ANY (CAST(:targets AS BIGINT[])))}
 ORDER BY r.job
   {lock FOR NO KEY UPDATE OF j SKIP LOCKED}
