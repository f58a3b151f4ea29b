-- The reason also says that its processes were seen to be gone: recovery then waits for no further grace. One that had fenced
-- itself is gone now, and what it said stays the reason.
UPDATE unstuck_workers
   SET lease_until = CASE WHEN lease_until > unstuck_now() THEN unstuck_now() ELSE lease_until END,
       reason = CASE WHEN state = 'fenced' AND reason IS NOT NULL THEN reason ELSE :reason END,
       state = CASE WHEN state = 'fenced' THEN 'gone' ELSE state END
 WHERE id = :worker AND lease_until = :seen
