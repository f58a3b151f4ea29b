SELECT k.tenant, k.key, k.fingerprint, k.job
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, key TEXT)
  JOIN unstuck_keys k ON k.tenant = r.tenant AND k.key = r.key
