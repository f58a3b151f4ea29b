-- As open_routes, of these routes.
SELECT asked.route, (SELECT MIN(first.rank) FROM unstuck_ready first WHERE first.route = asked.route) AS rank,
       (SELECT first.job FROM unstuck_ready first WHERE first.route = asked.route ORDER BY first.rank, first.job LIMIT 1) AS job,
       has_pauses, has_limits
  FROM {list :routes AS asked (route BIGINT)}
 CROSS JOIN unstuck_gates_in_use
 WHERE EXISTS (SELECT 1 FROM unstuck_ready r WHERE r.route = asked.route)
