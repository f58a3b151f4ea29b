SELECT DISTINCT workflow AS name
  FROM unstuck_routes
 WHERE tenant = :tenant AND workflow > :after
 ORDER BY workflow
 LIMIT :most
