SELECT id AS number, tenant, queue, workflow, limit_key
  FROM unstuck_routes
 WHERE id IN (SELECT value FROM json_each(:numbers))
 ORDER BY id
