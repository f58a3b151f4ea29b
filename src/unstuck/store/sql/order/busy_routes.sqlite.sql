-- A loose index scan: one step per route on which something runs. Then those of jobs under a body mark, and how many these are.
WITH RECURSIVE busy (route) AS (
    SELECT MIN(route) FROM unstuck_running
     UNION ALL
    SELECT (SELECT MIN(a.route) FROM unstuck_running a WHERE a.route > busy.route) FROM busy WHERE busy.route IS NOT NULL
)
SELECT m.id AS route, m.tenant, m.queue, m.workflow, m.limit_key, 0 AS held
  FROM busy CROSS JOIN unstuck_routes m ON m.id = busy.route
 UNION ALL
SELECT m.id, m.tenant, m.queue, m.workflow, m.limit_key, COUNT(*)
  FROM unstuck_body_marks h CROSS JOIN unstuck_jobs j ON j.id = h.job CROSS JOIN unstuck_routes m ON m.id = j.route
 GROUP BY m.id
