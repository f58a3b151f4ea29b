SELECT route FROM unstuck_gates WHERE route = :route AND is_limit = 0 LIMIT 1
