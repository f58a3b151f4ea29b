SELECT d.id, d.named_at, d.tenant, d.queue, d.workflow, d.limit_key
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_routes d
    ON d.tenant = r.value ->> 'tenant' AND d.queue = r.value ->> 'queue' AND d.workflow = r.value ->> 'workflow'
   AND d.limit_key = r.value ->> 'limit_key'
