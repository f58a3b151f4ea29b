-- Sorted: claims that need the same limits never wait for each other in a circle. Limits come before all other locks.
SELECT id
  FROM unstuck_limits
 WHERE id = ANY (ARRAY(SELECT limit_id FROM unstuck_route_limits WHERE route = ANY (CAST(:routes AS BIGINT[]))))
 ORDER BY id
   FOR UPDATE
