-- Those of a workflow: of one tenant, or (NULL) of all. Sorted, as a settlement takes them.
SELECT tenant
  FROM unstuck_breakers
 WHERE workflow = :workflow AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
 ORDER BY tenant, workflow
   FOR UPDATE
