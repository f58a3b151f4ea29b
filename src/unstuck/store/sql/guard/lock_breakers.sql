-- Those of a workflow: of one tenant, or (NULL) of all. Sorted as a settlement takes them: by code points, whatever the locale.
SELECT tenant
  FROM unstuck_breakers
 WHERE workflow = :workflow AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
 ORDER BY {binary tenant}, workflow
   {lock FOR UPDATE}
