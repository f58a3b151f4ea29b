SELECT id
  FROM unstuck_routes
 WHERE tenant = :tenant
   AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
   AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
 LIMIT :most
