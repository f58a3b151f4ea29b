-- LATERAL ... LIMIT 1 as in find_routes.
SELECT d.id, d.tenant, d.name
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, name TEXT)
 CROSS JOIN LATERAL (SELECT id, tenant, name FROM unstuck_targets WHERE tenant = r.tenant AND name = r.name LIMIT 1) AS d
