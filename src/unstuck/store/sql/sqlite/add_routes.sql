INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key)
SELECT value ->> 'tenant', value ->> 'queue', value ->> 'workflow', value ->> 'limit_key' FROM json_each(:rows) WHERE TRUE
ON CONFLICT (tenant, queue, workflow, limit_key) DO NOTHING
