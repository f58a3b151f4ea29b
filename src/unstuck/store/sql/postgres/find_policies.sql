-- LATERAL ... LIMIT 1 as in find_routes.
SELECT d.id, d.digest
  FROM json_to_recordset(CAST(:rows AS json)) AS r (digest TEXT)
 CROSS JOIN LATERAL (SELECT id, digest FROM unstuck_policies WHERE digest = r.digest LIMIT 1) AS d
