-- A renewal that is under way wins, and whoever else holds the row keeps nobody waiting: it comes with the next sweep.
SELECT w.id, unstuck_now() AS now
  FROM unstuck_workers w
 WHERE w.id = :worker
   AND (w.lease_until <= unstuck_now() - :grace OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
   {lock FOR UPDATE SKIP LOCKED}
