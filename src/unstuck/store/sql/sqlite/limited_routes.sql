SELECT route FROM unstuck_route_limits WHERE route = :route LIMIT 1
