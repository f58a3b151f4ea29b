SELECT COUNT(*) AS number FROM unstuck_workflows WHERE tenant = :tenant
