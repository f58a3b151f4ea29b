-- Of one worker, but for those that could not be moved alone.
SELECT a.job
  FROM unstuck_running a
 WHERE a.worker = :worker AND a.job > :after
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'recover' AND q.item = a.job)
 ORDER BY a.job
 LIMIT :batch
