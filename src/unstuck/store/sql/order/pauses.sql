SELECT kind, name, tenant, since_at, until_at, by, reason
  FROM unstuck_pauses
 WHERE (until_at IS NULL OR until_at > (SELECT unstuck_now()))
   AND (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*'))
 ORDER BY since_at, kind, name, tenant
