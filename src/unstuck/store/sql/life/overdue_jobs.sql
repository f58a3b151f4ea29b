-- Of workers whose lease holds: those of a dead one belong to recovery, which knows what a loss costs. But for those that could not be moved alone.
SELECT a.job, (SELECT unstuck_now()) AS now
  FROM unstuck_running a
  JOIN unstuck_workers w ON w.id = a.worker
 WHERE a.overdue_at <= (SELECT unstuck_now() - :margin)
   AND w.lease_until > (SELECT unstuck_now())
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'overdue' AND q.item = a.job)
 ORDER BY a.job
 LIMIT :batch
