-- Up to :most jobs of these routes that wait for a time, in no order; LATERAL, ORDER BY and INDEXED BY as in counts.
SELECT s.job AS number
  FROM {list :routes AS mine (route BIGINT)}
  {some_by_key unstuck_timers AS s USING unstuck_timers_route ON s.kind = 'start' AND s.route = mine.route ORDER BY s.job LIMIT :most}
 LIMIT :most
