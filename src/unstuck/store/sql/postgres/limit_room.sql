SELECT route, limit_id, bucket, concurrency, running, rate, started
  FROM unstuck_limit_room
 WHERE route = ANY (CAST(:routes AS BIGINT[]))
