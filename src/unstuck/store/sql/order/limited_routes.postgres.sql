-- For a look, which asks about a thousand: no more than it needs.
SELECT route, BOOL_OR(COALESCE(running >= concurrency, FALSE) OR COALESCE(started >= rate, FALSE)) AS is_shut
  FROM unstuck_room(CAST(:routes AS BIGINT[]))
 GROUP BY route
