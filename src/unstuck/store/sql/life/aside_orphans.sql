SELECT q.item AS job
  FROM unstuck_quarantine q
  JOIN unstuck_jobs j ON j.id = q.item
 WHERE q.duty = 'orphan' AND j.route = :route
 ORDER BY q.tried_at, q.item
 LIMIT :batch
