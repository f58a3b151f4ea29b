-- Up to :most jobs of these routes that ended in a state, in no order; LATERAL, ORDER BY and INDEXED BY as in counts.
SELECT d.job AS number
  FROM {list :routes AS mine (route BIGINT)}
  {some_by_key unstuck_done AS d USING unstuck_done_route
               ON {postgres (d.route, d.state) >= (mine.route, :state) AND (d.route, d.state) <= (mine.route, :state)}
                  {sqlite d.route = mine.route AND d.state = :state}
               ORDER BY d.route, d.state LIMIT :most}
 LIMIT :most
