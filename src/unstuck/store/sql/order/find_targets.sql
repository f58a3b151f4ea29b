SELECT d.id, d.named_at, d.tenant, d.name
  FROM {rows :rows AS r (tenant TEXT, name TEXT)}
  {by_key unstuck_targets AS d ON d.tenant = r.tenant AND d.name = r.name}
