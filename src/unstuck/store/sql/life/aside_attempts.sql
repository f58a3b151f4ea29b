-- Of the quarantine: those that run, and with whom; the one that has waited longest for a try first.
SELECT q.item AS job, a.worker
  FROM unstuck_quarantine q
  JOIN unstuck_running a ON a.job = q.item
 WHERE q.duty = :duty
 ORDER BY q.tried_at, q.item
 LIMIT :batch
