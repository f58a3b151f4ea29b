-- What WAITING jobs wait for and has not come: one row each, none for a job whose answer is there. Only the wait that a run asked for
-- last can be open: the others of a long loop are not read.
SELECT w.*
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
  CROSS JOIN unstuck_waits w ON w.job = j.id AND w.run = j.run
 WHERE j.state = 'WAITING' AND w.answer IS NULL
   AND w.key = (SELECT o.key FROM unstuck_waits o WHERE o.job = j.id AND o.run = j.run ORDER BY o.token DESC LIMIT 1)
 ORDER BY w.job
