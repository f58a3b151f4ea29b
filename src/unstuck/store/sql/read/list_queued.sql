-- Up to :most jobs of these routes that wait for a worker, a time or their turn, in no order; some_by_key and USING as in counts.
SELECT job AS number
  FROM (SELECT r.job
          FROM {list :routes AS mine (route BIGINT)}
          {some_by_key unstuck_ready AS r ON r.route = mine.route ORDER BY r.rank LIMIT :most}
         UNION ALL
        SELECT s.job
          FROM {list :routes AS mine (route BIGINT)}
          {some_by_key unstuck_timers AS s USING unstuck_timers_route ON s.kind = 'start' AND s.route = mine.route ORDER BY s.job LIMIT :most}
         UNION ALL
        SELECT l.job
          FROM {list :routes AS mine (route BIGINT)}
          {some_by_key unstuck_line AS l USING unstuck_line_route ON l.route = mine.route ORDER BY l.job LIMIT :most}) AS waiting
 LIMIT :most
