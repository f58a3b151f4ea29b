-- The rows come sorted, so that two submits of the same new targets wait for each other in the same order.
INSERT INTO unstuck_targets (tenant, name)
SELECT tenant, name FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, name TEXT)
ON CONFLICT (tenant, name) DO NOTHING
