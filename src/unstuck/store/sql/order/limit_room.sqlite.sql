-- Only which limits count these routes; what is counted is asked apart (limit_room.py). IN, not a join: so it reaches into the view.
SELECT route, kind, name, tenant, limit_id, bucket, concurrency, rate, per_us
  FROM unstuck_route_limits
 WHERE route IN (SELECT value FROM json_each(:routes))
