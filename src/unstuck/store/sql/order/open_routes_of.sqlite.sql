-- As open_routes, of these routes.
SELECT asked.value AS route, (SELECT MIN(first.rank) FROM unstuck_ready first WHERE first.route = asked.value) AS rank,
       (SELECT first.job FROM unstuck_ready first WHERE first.route = asked.value ORDER BY first.rank, first.job LIMIT 1) AS job,
       has_pauses, has_limits
  FROM json_each(:routes) AS asked
 CROSS JOIN unstuck_gates_in_use
 WHERE EXISTS (SELECT 1 FROM unstuck_ready r WHERE r.route = asked.value)
