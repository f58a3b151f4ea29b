SELECT route, limit_id, bucket, concurrency, running, rate, started
  FROM unstuck_room(CAST(:routes AS BIGINT[]))
