INSERT INTO unstuck_ready (route, rank, job)
SELECT j.route, j.rank, j.id
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.target IS NULL
