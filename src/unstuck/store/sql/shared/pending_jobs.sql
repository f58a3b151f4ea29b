SELECT j.id AS number, j.route, j.target AS target_number, j.priority, j.policy, j.run, j.token, j.n, j.failures, j.losses,
       j.suspects, j.alone, j.started, j.available_at, j.on_hold, j.after_failure, unstuck_now() AS now,
       CASE WHEN j.token = 0 THEN j.appointed END AS appointed, unstuck_ahead() AS ahead
  FROM unstuck_jobs j
 WHERE j.id {in :jobs BIGINT} AND j.state = 'PENDING'
   AND NOT EXISTS (SELECT 1 FROM unstuck_done e WHERE e.job = j.id)
 ORDER BY j.id
