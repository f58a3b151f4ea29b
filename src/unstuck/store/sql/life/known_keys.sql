SELECT k.tenant, k.key, k.fingerprint, k.job
  FROM {rows :rows AS r (tenant TEXT, key TEXT)}
  {by_key unstuck_keys AS k ON k.tenant = r.tenant AND k.key = r.key}
