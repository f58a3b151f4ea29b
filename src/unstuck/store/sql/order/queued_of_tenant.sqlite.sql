-- What waits of one tenant, counted up to :most. A PENDING job has neither a ready row nor a timer.
SELECT COUNT(*) AS waiting
  FROM (SELECT 1 AS one FROM unstuck_routes o CROSS JOIN unstuck_ready r ON r.route = o.id
         WHERE o.tenant = :tenant
         UNION ALL
        SELECT 1 FROM unstuck_routes o CROSS JOIN unstuck_line l ON l.route = o.id
         WHERE o.tenant = :tenant
         UNION ALL
        SELECT 1 FROM unstuck_routes o CROSS JOIN unstuck_timers s ON s.route = o.id AND s.kind = 'start'
         WHERE o.tenant = :tenant
         UNION ALL
        SELECT 1 FROM unstuck_jobs j
         WHERE j.tenant = :tenant AND j.state = 'PENDING'
           AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id)
         LIMIT :most) AS found
