SELECT * FROM unstuck_blacklist
 WHERE removed_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*'))
 ORDER BY workflow, tenant
