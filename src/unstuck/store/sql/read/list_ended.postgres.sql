-- Up to :most jobs of these routes that ended in a state, in no order; LATERAL and ORDER BY as in counts.
SELECT ended.job AS number
  FROM unnest(CAST(:routes AS BIGINT[])) AS mine (route)
 CROSS JOIN LATERAL (
       SELECT d.job
         FROM unstuck_done d
        WHERE (d.route, d.state) >= (mine.route, :state) AND (d.route, d.state) <= (mine.route, :state)
        ORDER BY d.route, d.state
        LIMIT :most) AS ended
 LIMIT :most
