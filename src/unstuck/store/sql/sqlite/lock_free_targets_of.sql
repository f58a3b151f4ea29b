-- With one writer there is nothing to lock.
SELECT DISTINCT j.target AS id
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.target IS NOT NULL
