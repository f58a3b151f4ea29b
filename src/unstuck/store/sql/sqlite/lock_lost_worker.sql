-- With one writer a look is as good as a lock.
SELECT w.id
  FROM unstuck_workers w
 WHERE w.id = :worker
   AND (w.lease_until <= unstuck_now() - :grace OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
