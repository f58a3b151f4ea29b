-- The rows come sorted, so that two submits of the same new routes wait for each other in the same order.
INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key, named_at)
SELECT tenant, queue, workflow, limit_key, unstuck_now()
  FROM {rows :rows AS r (tenant TEXT, queue TEXT, workflow TEXT, limit_key TEXT)}
 WHERE TRUE
ON CONFLICT (tenant, queue, workflow, limit_key) DO NOTHING
