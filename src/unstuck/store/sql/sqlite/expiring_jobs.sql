SELECT r.value ->> 'due_at' AS due_at, j.id AS job, j.uid, j.route, j.rank, j.available_at, j.expires_at, j.run, j.token, j.n, j.failures, j.losses,
       j.suspects, j.alone, j.target, j.priority, j.started, j.policy,
       CASE WHEN g.head = j.id THEN 1 ELSE 0 END AS is_head, unstuck_now() AS now
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value ->> 'job'
  LEFT JOIN unstuck_targets g ON g.id = j.target
 ORDER BY j.id
