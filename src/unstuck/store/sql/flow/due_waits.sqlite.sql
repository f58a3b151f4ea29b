SELECT t.due_at, j.id AS number, j.id AS job, j.uid, j.state, j.route, j.target AS target_number, j.priority, j.policy, j.run, j.token, j.event_count, j.failures,
       j.losses, j.suspects, j.alone, j.started, CASE WHEN g.head = j.id THEN 1 ELSE 0 END AS is_head, unstuck_now() AS now
  FROM json_each(:timers) AS r
  CROSS JOIN unstuck_timers t ON t.kind = 'wait' AND t.due_at = r.value ->> 'due_at' AND t.job = r.value ->> 'job'
  CROSS JOIN unstuck_jobs j ON j.id = t.job
  LEFT JOIN unstuck_targets g ON g.id = j.target
 WHERE j.target IS NULL OR j.target IN (SELECT value FROM json_each(:targets))
 ORDER BY t.due_at, t.job
