-- The rows come sorted, so that two submits of the same new targets wait for each other in the same order.
INSERT INTO unstuck_targets (tenant, name, named_at)
SELECT tenant, name, unstuck_now() FROM {rows :rows AS r (tenant TEXT, name TEXT)}
 WHERE TRUE
ON CONFLICT (tenant, name) DO NOTHING
