-- probe: the one job that this gate lets through.
SELECT route, probe FROM unstuck_gates WHERE route = :route AND is_limit = 0
