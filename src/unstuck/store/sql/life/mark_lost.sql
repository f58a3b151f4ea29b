-- One that drained, or fenced itself, keeps that word: what it still held costs its jobs nothing. A renewal that is under
-- way wins, and whoever else holds a row keeps nobody waiting: it comes with the next sweep.
UPDATE unstuck_workers
   SET state = CASE WHEN state = 'active' THEN 'lost' ELSE state END, ended_at = COALESCE(ended_at, lease_until)
 WHERE id {among}
       SELECT w.id
         FROM unstuck_workers w
        WHERE w.id {in :workers BIGINT} AND (w.state = 'active' OR w.ended_at IS NULL)
          AND (w.lease_until <= unstuck_now() - :grace
               OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
          {lock FOR UPDATE SKIP LOCKED}
       {end}
