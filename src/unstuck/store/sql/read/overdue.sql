-- What somebody should have swept by :late ago: of each kind the oldest. What is in quarantine is known and tried alone. From one worker
-- with open attempts to the next by the index, because most of the rows of either table are no matter here.
WITH RECURSIVE clock AS (
    SELECT unstuck_now() - CAST(:late AS BIGINT) AS late, unstuck_now() AS now
), holder (worker) AS (
    SELECT MIN(worker) FROM unstuck_running
     UNION ALL
    SELECT (SELECT MIN(r.worker) FROM unstuck_running r WHERE r.worker > holder.worker) FROM holder WHERE holder.worker IS NOT NULL
), late AS (
    SELECT * FROM (
        SELECT 'lost' AS what, w.lease_until AS due_at, w.name AS worker,
               (SELECT r.job FROM unstuck_running r
                 WHERE r.worker = w.id AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.item = r.job AND q.duty <> 'target')
                 LIMIT 1) AS job
          FROM holder
          JOIN unstuck_workers w ON w.id = holder.worker
         WHERE w.lease_until <= (SELECT late FROM clock)
         ORDER BY 2
         LIMIT 100) AS lost
     WHERE lost.job IS NOT NULL
     UNION ALL
    SELECT * FROM (
        SELECT kind, due_at, NULL, job FROM unstuck_timers t
         WHERE kind = 'start' AND due_at <= (SELECT late FROM clock)
           AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.item = t.job AND q.duty <> 'target')
         ORDER BY due_at LIMIT 1) AS start
     UNION ALL
    SELECT * FROM (
        SELECT kind, due_at, NULL, job FROM unstuck_timers t
         WHERE kind = 'expire' AND due_at <= (SELECT late FROM clock)
           AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.item = t.job AND q.duty <> 'target')
         ORDER BY due_at LIMIT 1) AS expire
     UNION ALL
    SELECT * FROM (
        SELECT kind, due_at, NULL, job FROM unstuck_timers t
         WHERE kind = 'wait' AND due_at <= (SELECT late FROM clock)
           AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.item = t.job AND q.duty <> 'target')
         ORDER BY due_at LIMIT 1) AS wait
     UNION ALL
    SELECT * FROM (
        SELECT 'backstop', a.overdue_at, w.name, a.job
          FROM unstuck_running a
          JOIN unstuck_workers w ON w.id = a.worker
         WHERE a.overdue_at <= (SELECT late FROM clock) - CAST(:backstop AS BIGINT) AND w.lease_until > (SELECT now FROM clock)
           AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.item = a.job AND q.duty <> 'target')
         ORDER BY a.overdue_at LIMIT 1) AS backstop
)
SELECT late.what, late.due_at, late.worker, j.uid, j.tenant
  FROM late
  LEFT JOIN unstuck_jobs j ON j.id = late.job
 ORDER BY late.due_at
 LIMIT 10
