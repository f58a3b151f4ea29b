-- There is one writer: nothing to lock.
SELECT limit_id AS id FROM unstuck_route_limits WHERE route = :route
