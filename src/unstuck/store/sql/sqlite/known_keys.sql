SELECT k.tenant, k.key, k.fingerprint, k.job
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_keys k ON k.tenant = r.value ->> 'tenant' AND k.key = r.value ->> 'key'
