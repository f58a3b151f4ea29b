SELECT w.*, j.uid, j.workflow
  FROM unstuck_jobs j
  JOIN unstuck_waits w ON w.job = j.id
 WHERE j.tenant = :tenant AND j.uid = :uid
 ORDER BY w.run, w.token, w.key
