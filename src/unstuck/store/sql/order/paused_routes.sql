-- probe: the one job that this gate lets through. = ANY reaches into every branch of the view; SQLite asks route by route.
SELECT route, probe FROM unstuck_gates WHERE route {postgres = ANY (CAST(:routes AS BIGINT[]))}{sqlite = :route} AND is_limit = 0
