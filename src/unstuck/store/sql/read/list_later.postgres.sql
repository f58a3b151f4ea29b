-- Up to :most jobs of these routes that wait for a time, in no order; LATERAL and ORDER BY as in counts.
SELECT later.job AS number
  FROM unnest(CAST(:routes AS BIGINT[])) AS mine (route)
 CROSS JOIN LATERAL (
       SELECT s.job
         FROM unstuck_timers s
        WHERE s.kind = 'start' AND s.route = mine.route
        ORDER BY s.job
        LIMIT :most) AS later
 LIMIT :most
