SELECT d.job
  FROM unstuck_done d
 WHERE d.finished_at <= unstuck_now() - :retention
   AND NOT EXISTS (SELECT 1 FROM unstuck_holds h WHERE h.job = d.job)
 ORDER BY d.finished_at, d.job
 LIMIT :batch
