SELECT DISTINCT queue AS name FROM unstuck_routes WHERE tenant = :tenant AND queue > :after ORDER BY queue LIMIT :most
