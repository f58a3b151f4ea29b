SELECT d.id, d.named_at, d.tenant, d.name
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_targets d ON d.tenant = r.value ->> 'tenant' AND d.name = r.value ->> 'name'
