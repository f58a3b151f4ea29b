-- What WAITING jobs wait for and has not come: one row each, none for a job whose answer is there.
SELECT w.*
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
  CROSS JOIN unstuck_waits w ON w.job = j.id AND w.run = j.run
 WHERE j.state = 'WAITING' AND w.answer IS NULL
 ORDER BY w.job
