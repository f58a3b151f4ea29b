-- Whose lease is over, and nobody has marked it yet. Only a look, as that at lost_workers.
SELECT w.id, unstuck_now() AS now
  FROM unstuck_workers w
 WHERE w.ended_at IS NULL AND w.id > :after
   AND (w.lease_until <= unstuck_now() - :grace
        OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
 ORDER BY w.id
 LIMIT :batch
