INSERT INTO unstuck_inbox (target)
SELECT DISTINCT j.target
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.state = 'QUEUED' AND j.available_at <= j.created_at AND j.target IS NOT NULL
