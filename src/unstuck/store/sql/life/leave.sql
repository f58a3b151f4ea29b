UPDATE unstuck_workers
   SET state = 'gone', lease_until = unstuck_now(), ended_at = COALESCE(ended_at, unstuck_now())
 WHERE id = :worker AND state <> 'gone'
