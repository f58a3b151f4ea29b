-- Whose lease is over and who has attempts that a sweep may move: a step from worker to worker through the index of what runs, because most
-- rows here are of workers that have nothing any more. Only a look: who acts looks again behind a lock.
WITH RECURSIVE holding (worker) AS (
    SELECT (SELECT r.worker FROM unstuck_running r WHERE r.worker > :after ORDER BY r.worker LIMIT 1)
     UNION ALL
    SELECT (SELECT r.worker FROM unstuck_running r WHERE r.worker > holding.worker ORDER BY r.worker LIMIT 1)
      FROM holding
     WHERE holding.worker IS NOT NULL
)
SELECT w.id, unstuck_now() AS now
  FROM unstuck_workers w
 WHERE w.id IN (SELECT h.worker FROM holding h WHERE h.worker IS NOT NULL)
   AND (w.lease_until <= unstuck_now() - :grace
        OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
   AND EXISTS (SELECT 1 FROM unstuck_running r
                WHERE r.worker = w.id
                  AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'recover' AND q.item = r.job))
 ORDER BY w.id
 LIMIT 100
