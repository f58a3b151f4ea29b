-- LATERAL ... LIMIT 1 as in find_routes.
SELECT k.tenant, k.key, k.fingerprint, k.job
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, key TEXT)
 CROSS JOIN LATERAL (SELECT * FROM unstuck_keys WHERE tenant = r.tenant AND key = r.key LIMIT 1) AS k
