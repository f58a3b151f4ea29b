-- What waits in one queue, of one tenant or ('*') of all, counted up to :most. A PENDING job has neither a ready row nor a timer.
-- {exactly} with ORDER BY ... LIMIT goes by the index, route after route. An equality would be planned by how many jobs wait on
-- a route on average, and where one route has them all, that of another is looked for among all of them.
SELECT COUNT(*) AS waiting
  FROM (SELECT 1 AS one
          FROM unstuck_routes o
          {some_by_key unstuck_ready AS r ON {exactly r.route o.id} ORDER BY r.route LIMIT :most}
         WHERE o.queue = :queue AND (:tenant = '*' OR o.tenant = :tenant)
         UNION ALL
        SELECT 1
          FROM unstuck_routes o
          {some_by_key unstuck_line AS l ON {exactly l.route o.id} ORDER BY l.route LIMIT :most}
         WHERE o.queue = :queue AND (:tenant = '*' OR o.tenant = :tenant)
         UNION ALL
        SELECT 1
          FROM unstuck_routes o
          {some_by_key unstuck_timers AS s ON s.kind = 'start' AND {exactly s.route o.id} ORDER BY s.route LIMIT :most}
         WHERE o.queue = :queue AND (:tenant = '*' OR o.tenant = :tenant)
         UNION ALL
        SELECT 1
          FROM (SELECT DISTINCT o.tenant FROM unstuck_routes o WHERE o.queue = :queue AND (:tenant = '*' OR o.tenant = :tenant)) AS whose
          {some_by_key unstuck_jobs AS j ON j.tenant = whose.tenant AND j.state = 'PENDING' AND j.queue = :queue
                        AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id) LIMIT :most}
         LIMIT :most) AS found
