-- The rows come sorted, so that two submits of the same new routes wait for each other in the same order.
INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key)
SELECT tenant, queue, workflow, limit_key
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, queue TEXT, workflow TEXT, limit_key TEXT)
ON CONFLICT (tenant, queue, workflow, limit_key) DO NOTHING
