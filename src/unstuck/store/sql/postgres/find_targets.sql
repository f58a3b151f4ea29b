SELECT d.id, d.tenant, d.name
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, name TEXT)
  JOIN unstuck_targets d ON d.tenant = r.tenant AND d.name = r.name
