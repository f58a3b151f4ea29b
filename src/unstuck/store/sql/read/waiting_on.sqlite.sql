-- The jobs that have been due longest, of the first :each on this route, in the queue and in lines.
SELECT :route AS route, j.uid, j.tenant, j.queue, j.workflow, j.available_at, 0 AS is_paused
  FROM (SELECT * FROM (SELECT r.job FROM unstuck_ready r WHERE r.route = :route ORDER BY r.rank, r.job LIMIT :each)
         UNION ALL
        SELECT * FROM (SELECT l.job FROM unstuck_line l INDEXED BY unstuck_line_route WHERE l.route = :route ORDER BY l.job LIMIT :each)) AS early
 CROSS JOIN unstuck_jobs j ON j.id = early.job
 WHERE j.available_at <= (SELECT unstuck_now())
 ORDER BY j.available_at, j.id
 LIMIT :most
