SELECT 1 AS yes
 WHERE EXISTS (SELECT 1 FROM unstuck_routes WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM unstuck_tenants WHERE name = :tenant)
