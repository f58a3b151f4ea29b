-- The lock makes a renewal that is under way win: after the wait the lease is read again.
SELECT w.id
  FROM unstuck_workers w
 WHERE (w.lease_until <= unstuck_now() - :grace OR (w.reason IS NOT NULL AND w.lease_until <= unstuck_now()))
   AND (w.state = 'active' OR EXISTS (SELECT 1 FROM unstuck_running r WHERE r.worker = w.id))
 ORDER BY w.id
 LIMIT 100
   FOR UPDATE SKIP LOCKED
