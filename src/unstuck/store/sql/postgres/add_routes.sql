-- The rows come sorted, so that two submits of the same new routes wait for each other in the same order.
INSERT INTO unstuck_routes (tenant, queue, workflow)
SELECT tenant, queue, workflow FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, queue TEXT, workflow TEXT)
ON CONFLICT (tenant, queue, workflow) DO NOTHING
