-- Of each of these jobs what its present run asked for last. SQLite takes the other columns from the row of the maximum.
SELECT w.*, MAX(w.token)
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
  CROSS JOIN unstuck_waits w ON w.job = j.id AND w.run = j.run
 GROUP BY w.job
