-- Up to :most jobs of these routes that wait for a worker, a time or their turn, in no order; LATERAL and ORDER BY
-- as in counts.
SELECT waiting.job AS number
  FROM unnest(CAST(:routes AS BIGINT[])) AS mine (route)
 CROSS JOIN LATERAL (
       (SELECT r.job FROM unstuck_ready r WHERE r.route = mine.route ORDER BY r.rank LIMIT :most)
        UNION ALL
       (SELECT s.job
          FROM unstuck_timers s
         WHERE s.kind = 'start' AND s.route = mine.route
         ORDER BY s.job
         LIMIT :most)
        UNION ALL
       (SELECT l.job
          FROM unstuck_line l
         WHERE l.route = mine.route
         ORDER BY l.job
         LIMIT :most)
       ) AS waiting
 LIMIT :most
