-- One that blocks a target or that another waits for stays as long as it does. A child stays as long as its parent's row: a
-- spawn that is repeated must find it, with its result, and not do its work twice.
SELECT d.job
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_done d ON d.job = r.value
  CROSS JOIN unstuck_jobs j ON j.id = d.job
 WHERE d.finished_at <= unstuck_now() - :retention
   AND NOT EXISTS (SELECT 1 FROM unstuck_holds h WHERE h.job = d.job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_targets t WHERE t.id = j.target AND t.head = j.id)
   AND NOT EXISTS (SELECT 1 FROM unstuck_dependencies w WHERE w.on_job = d.job)
   AND (SELECT p.id FROM unstuck_children c JOIN unstuck_jobs p ON p.id = c.parent WHERE c.child = d.job) IS NULL
