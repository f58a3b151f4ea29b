-- What somebody else holds is left to him: a claim waits for no limit. Sorted by name as Python sorts, whatever the database's locale, so
-- that of two who need the same limits the first gets all of them. Limits come before all other locks.
SELECT id
  FROM unstuck_limits
 WHERE id = ANY (ARRAY(SELECT limit_id FROM unstuck_route_limits WHERE route = ANY (CAST(:routes AS BIGINT[]))))
 ORDER BY kind COLLATE "C", name COLLATE "C", tenant COLLATE "C"
   FOR UPDATE SKIP LOCKED
