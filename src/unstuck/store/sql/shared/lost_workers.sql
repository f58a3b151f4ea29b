-- Whose lease is over, and who has not been marked or has attempts that a sweep may move. Only a look: who acts looks again behind a lock.
SELECT w.id, w.state
  FROM unstuck_workers w
 WHERE w.id > :after
   AND (w.lease_until <= unstuck_now() - :grace OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
   AND (w.state = 'active'
        OR EXISTS (SELECT 1 FROM unstuck_running r
                    WHERE r.worker = w.id
                      AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'recover' AND q.item = r.job)))
 ORDER BY w.id
 LIMIT 100
