-- Their rows are locked, so what they keep of a target nobody else changes.
SELECT j.id AS number, j.id AS job, j.uid, j.state, j.route, j.target AS target_number, j.priority, j.policy, j.run, j.token, j.event_count, j.failures,
       j.losses, j.suspects, j.alone, j.started, CASE WHEN g.head = j.id THEN 1 ELSE 0 END AS is_head, unstuck_now() AS now
  FROM unstuck_jobs j
  LEFT JOIN unstuck_targets g ON g.id = j.target
 WHERE j.id {in :jobs BIGINT} AND j.state = 'WAITING'
 ORDER BY j.id
