-- Of the jobs that could not be claimed: whom to try again, alone, the one that has waited longest for it first. The pauses grow up to 3 s.
SELECT r.route, r.rank, r.job
  FROM unstuck_quarantine q
  JOIN unstuck_jobs j ON j.id = q.item
  JOIN unstuck_ready r ON r.route = j.route AND r.rank = j.rank AND r.job = j.id
 WHERE q.duty = 'claim'
   AND q.tried_at + CASE WHEN q.tries < 6 THEN q.tries ELSE 6 END * 500000 <= unstuck_now()
 ORDER BY q.tried_at, q.item
 LIMIT :batch
