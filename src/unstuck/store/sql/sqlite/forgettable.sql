-- One that blocks a target or that another waits for stays as long as it does.
SELECT d.job
  FROM unstuck_done d
  JOIN unstuck_jobs j ON j.id = d.job
 WHERE d.finished_at <= unstuck_now() - :retention
   AND NOT EXISTS (SELECT 1 FROM unstuck_holds h WHERE h.job = d.job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_targets t WHERE t.id = j.target AND t.head = j.id)
   AND NOT EXISTS (SELECT 1 FROM unstuck_dependencies w WHERE w.on_job = d.job)
 ORDER BY d.finished_at, d.job
 LIMIT :batch
