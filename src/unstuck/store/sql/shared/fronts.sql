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
       EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target')
       OR (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS has_pauses,
       EXISTS (SELECT 1 FROM unstuck_limits WHERE concurrency IS NOT NULL OR rate IS NOT NULL) AS has_limits
  FROM seen
 WHERE seen.route IS NOT NULL
 LIMIT :most
