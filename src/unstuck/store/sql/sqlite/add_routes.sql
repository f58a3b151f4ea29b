INSERT INTO unstuck_routes (tenant, queue, workflow)
SELECT value ->> 'tenant', value ->> 'queue', value ->> 'workflow' FROM json_each(:rows) WHERE true
ON CONFLICT (tenant, queue, workflow) DO NOTHING
