INSERT INTO unstuck_routes (tenant, queue, workflow)
VALUES (:tenant, :queue, :workflow)
ON CONFLICT (tenant, queue, workflow) DO NOTHING
