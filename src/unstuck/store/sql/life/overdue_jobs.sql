-- Of workers whose lease holds: those of a dead one belong to recovery, which knows what a loss costs. Those that could not be moved alone
-- come last, a few of them, the one that has waited longest for a try first.
SELECT late.job, 0 AS is_aside, late.now
  FROM (SELECT a.job, (SELECT unstuck_now()) AS now
          FROM unstuck_running a
          JOIN unstuck_workers w ON w.id = a.worker
         WHERE a.overdue_at <= (SELECT unstuck_now() - :margin)
           AND w.lease_until > (SELECT unstuck_now())
           AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'overdue' AND q.item = a.job)
         ORDER BY a.job
         LIMIT :batch) AS late
 UNION ALL
SELECT aside.job, 1, (SELECT unstuck_now())
  FROM (SELECT q.item AS job
          FROM unstuck_quarantine q
          JOIN unstuck_running a ON a.job = q.item
         WHERE q.duty = 'overdue'
         ORDER BY q.tried_at, q.item
         LIMIT :retried) AS aside
