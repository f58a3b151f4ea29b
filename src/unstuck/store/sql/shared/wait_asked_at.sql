-- Where a page of open waits ended, whether or not that wait was answered since.
SELECT w.asked_at, w.job
  FROM unstuck_jobs j
  JOIN unstuck_waits w ON w.job = j.id
 WHERE j.uid = :uid AND w.kind = :kind
 ORDER BY w.asked_at DESC
 LIMIT 1
