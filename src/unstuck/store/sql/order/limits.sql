SELECT kind, name, tenant, concurrency, rate, per_us, max_queued, set_at, set_by
  FROM unstuck_limits
 WHERE CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*')
 ORDER BY kind, name, tenant
