SELECT job
  FROM unstuck_ready
 WHERE route = :route
   AND (rank, job) >= (:rank, :job)
   AND (rank, job) <= (:last_rank, :last_job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks WHERE unstuck_body_marks.job = unstuck_ready.job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = :without AND q.item = unstuck_ready.job)
   AND (:only IS NULL OR job = :only)
 ORDER BY rank, job
 LIMIT :most
