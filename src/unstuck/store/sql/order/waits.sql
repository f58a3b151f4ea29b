-- A loose index scan over both places where jobs wait. Of a line any early job will do: its order is by target, not by route. SQLite must be told
-- where to stop, and looks at the gates of all routes for a page of ten: only where something is paused at all.
WITH RECURSIVE seen (route) AS (
    SELECT MIN(place.route)
      FROM (SELECT MIN(route) AS route FROM unstuck_ready WHERE route > :after
             UNION ALL
            SELECT MIN(route) FROM unstuck_line WHERE route > :after) AS place
     UNION ALL
    SELECT (SELECT MIN(place.route)
              FROM (SELECT MIN(r.route) AS route FROM unstuck_ready r WHERE r.route > seen.route
                     UNION ALL
                    SELECT MIN(l.route) FROM unstuck_line l WHERE l.route > seen.route) AS place)
      FROM seen
     WHERE seen.route IS NOT NULL
     {sqlite LIMIT :most + 1}
), first AS (
    SELECT seen.route,
           COALESCE((SELECT r.job FROM unstuck_ready r WHERE r.route = seen.route ORDER BY r.rank, r.job LIMIT 1),
                    (SELECT MIN(early.job)
                       FROM (SELECT l.job FROM unstuck_line l WHERE l.route = seen.route LIMIT 1000) AS early)) AS job
      FROM seen
     WHERE seen.route IS NOT NULL
     LIMIT :most
)
SELECT first.route, j.uid, j.tenant, j.queue, j.workflow, j.available_at,
       CASE WHEN (SELECT has_pauses FROM unstuck_gates_in_use)
            THEN COALESCE((SELECT 1 FROM unstuck_gates g WHERE g.route = first.route AND g.is_limit = 0 LIMIT 1), 0)
            ELSE 0 END AS is_paused
  FROM first
  LEFT JOIN unstuck_jobs j ON j.id = first.job
 ORDER BY first.route
