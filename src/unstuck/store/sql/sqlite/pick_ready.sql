SELECT job
  FROM unstuck_ready
 WHERE route = :route
   AND (rank, job) >= (:rank, :job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_holds WHERE unstuck_holds.job = unstuck_ready.job)
   AND (:only IS NULL OR job = :only)
 ORDER BY rank, job
 LIMIT :most
