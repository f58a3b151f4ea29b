-- A loose index scan: one step per route above :after that has ready jobs, whatever their number. Whether anything is paused,
-- blacklisted or limited at all is asked once.
WITH RECURSIVE seen (route) AS (
    SELECT MIN(route) FROM unstuck_ready WHERE route > :after
     UNION ALL
    SELECT (SELECT MIN(later.route) FROM unstuck_ready later WHERE later.route > seen.route)
      FROM seen
     WHERE seen.route IS NOT NULL
)
SELECT seen.route, (SELECT MIN(first.rank) FROM unstuck_ready first WHERE first.route = seen.route) AS rank,
       (SELECT first.job FROM unstuck_ready first WHERE first.route = seen.route ORDER BY first.rank, first.job LIMIT 1) AS job,
       has_pauses, has_limits
  FROM seen
 CROSS JOIN unstuck_gates_in_use
 WHERE seen.route IS NOT NULL
 LIMIT :most
