INSERT INTO unstuck_inbox (target)
SELECT DISTINCT j.target
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.target IS NOT NULL
