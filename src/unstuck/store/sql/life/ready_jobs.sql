-- The first of a route from a place on, as a claim would meet them, but for those that somebody else is about to take.
SELECT rank, job
  FROM unstuck_ready
 WHERE route = :route
   AND (rank, job) >= (:rank, :job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks h WHERE h.job = unstuck_ready.job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'claim' AND q.item = unstuck_ready.job)
 ORDER BY rank, job
 LIMIT :most
