-- What waits of one tenant, counted up to :most. A PENDING job has neither a ready row nor a timer.
-- BETWEEN ... ORDER BY ... LIMIT goes by the index, route after route. An equality would be planned by how many jobs wait on
-- a route on average, and where one route has them all, that of another is looked for among all of them.
SELECT COUNT(*) AS waiting
  FROM (SELECT 1 AS one
          FROM unstuck_routes o
         CROSS JOIN LATERAL (SELECT 1 FROM unstuck_ready r WHERE r.route BETWEEN o.id AND o.id ORDER BY r.route LIMIT :most) AS ready
         WHERE o.tenant = :tenant
         UNION ALL
        SELECT 1
          FROM unstuck_routes o
         CROSS JOIN LATERAL (SELECT 1 FROM unstuck_line l WHERE l.route BETWEEN o.id AND o.id ORDER BY l.route LIMIT :most) AS line
         WHERE o.tenant = :tenant
         UNION ALL
        SELECT 1
          FROM unstuck_routes o
         CROSS JOIN LATERAL (
               SELECT 1 FROM unstuck_timers s
                WHERE s.kind = 'start' AND s.route BETWEEN o.id AND o.id ORDER BY s.route LIMIT :most) AS later
         WHERE o.tenant = :tenant
         UNION ALL
        SELECT 1 FROM unstuck_jobs j
         WHERE j.tenant = :tenant AND j.state = 'PENDING'
           AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id)
         LIMIT :most) AS found
