-- What waits in one queue, of one tenant or ('*') of all, counted up to :most. A PENDING job has neither a ready row nor a timer.
SELECT COUNT(*) AS waiting
  FROM (SELECT 1 AS one FROM unstuck_routes o CROSS JOIN unstuck_ready r ON r.route = o.id
         WHERE o.queue = :queue AND (:tenant = '*' OR o.tenant = :tenant)
         UNION ALL
        SELECT 1 FROM unstuck_routes o CROSS JOIN unstuck_line l ON l.route = o.id
         WHERE o.queue = :queue AND (:tenant = '*' OR o.tenant = :tenant)
         UNION ALL
        SELECT 1 FROM unstuck_routes o CROSS JOIN unstuck_timers s ON s.route = o.id AND s.kind = 'start'
         WHERE o.queue = :queue AND (:tenant = '*' OR o.tenant = :tenant)
         UNION ALL
        SELECT 1
          FROM (SELECT DISTINCT o.tenant FROM unstuck_routes o WHERE o.queue = :queue AND (:tenant = '*' OR o.tenant = :tenant)) AS whose
          CROSS JOIN unstuck_jobs j ON j.tenant = whose.tenant AND j.state = 'PENDING' AND j.queue = :queue
         WHERE NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id)
         LIMIT :most) AS found
