-- Sorted by name as Python sorts, whatever the database's locale: a deploy writes those of its code in that order, and nobody who needs the
-- same limits waits in a circle. Limits come before all other locks.
SELECT id
  FROM unstuck_limits
 WHERE id = ANY (ARRAY(SELECT limit_id FROM unstuck_route_limits WHERE route = ANY (CAST(:routes AS BIGINT[]))))
 ORDER BY kind COLLATE "C", name COLLATE "C", tenant COLLATE "C"
   FOR UPDATE
