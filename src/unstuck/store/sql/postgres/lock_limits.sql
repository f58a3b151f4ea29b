-- Sorted by name, as a deploy writes those of its code: nobody who needs the same limits waits in a circle. Limits come before all other locks.
SELECT id
  FROM unstuck_limits
 WHERE id = ANY (ARRAY(SELECT limit_id FROM unstuck_route_limits WHERE route = ANY (CAST(:routes AS BIGINT[]))))
 ORDER BY kind, name, tenant
   FOR UPDATE
