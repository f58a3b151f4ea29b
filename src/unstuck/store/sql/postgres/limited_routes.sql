SELECT DISTINCT route FROM unstuck_route_limits WHERE route = ANY (CAST(:routes AS BIGINT[]))
