-- probe: the one job that this gate lets through. = ANY reaches into every branch of the view.
SELECT route, probe FROM unstuck_gates WHERE route = ANY (CAST(:routes AS BIGINT[])) AND is_limit = 0
