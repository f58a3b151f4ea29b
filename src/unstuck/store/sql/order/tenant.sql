SELECT CAST(:name AS TEXT) AS name, COALESCE((SELECT weight FROM unstuck_tenants WHERE name = :name), 1) AS weight
 WHERE EXISTS (SELECT 1 FROM unstuck_routes WHERE tenant = :name)
    OR EXISTS (SELECT 1 FROM unstuck_tenants WHERE name = :name)
