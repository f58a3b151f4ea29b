-- May name a route twice: DISTINCT would work the whole view out first.
SELECT route FROM unstuck_route_limits WHERE route IN (SELECT value FROM json_each(:routes))
