INSERT INTO unstuck_events (job, number, at, kind, run, token)
SELECT j.id, 1, j.created_at, 'submitted', 1, 0
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
