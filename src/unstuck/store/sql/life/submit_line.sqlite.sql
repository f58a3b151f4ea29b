INSERT INTO unstuck_line (target, place, job, route)
SELECT j.target, -j.priority, j.id, j.route
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.state = 'QUEUED' AND j.available_at <= j.created_at AND j.target IS NOT NULL
