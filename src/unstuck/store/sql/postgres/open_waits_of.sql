-- What WAITING jobs wait for and has not come: one row each, none for a job whose answer is there.
SELECT w.*
  FROM unstuck_jobs j
  JOIN unstuck_waits w ON w.job = j.id AND w.run = j.run
 WHERE j.id = ANY (CAST(:jobs AS BIGINT[])) AND j.state = 'WAITING' AND w.answer IS NULL
 ORDER BY w.job
