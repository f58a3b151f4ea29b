-- The reason also says that its processes were seen to be gone: recovery then waits for no further grace.
UPDATE unstuck_workers
   SET lease_until = CASE WHEN lease_until > unstuck_now() THEN unstuck_now() ELSE lease_until END, reason = :reason
 WHERE id = :worker AND lease_until = :seen
