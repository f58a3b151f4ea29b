-- LATERAL ... LIMIT 1 as in find_routes.
SELECT d.id, d.named_at, d.tenant, d.name
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, name TEXT)
 CROSS JOIN LATERAL (SELECT id, named_at, tenant, name FROM unstuck_targets WHERE tenant = r.tenant AND name = r.name LIMIT 1) AS d
