INSERT INTO unstuck_timers (kind, due_at, job, route)
SELECT 'start', j.available_at, j.id, j.route
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.state = 'QUEUED' AND j.available_at > j.created_at
 UNION ALL
SELECT 'expire', j.expires_at, j.id, j.route
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.expires_at IS NOT NULL
