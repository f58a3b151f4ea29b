SELECT d.id, d.tenant, d.queue, d.workflow, d.limit_key
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, queue TEXT, workflow TEXT, limit_key TEXT)
  JOIN unstuck_routes d
    ON d.tenant = r.tenant AND d.queue = r.queue AND d.workflow = r.workflow AND d.limit_key = r.limit_key
