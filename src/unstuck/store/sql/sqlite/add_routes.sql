INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key, named_at)
SELECT value ->> 'tenant', value ->> 'queue', value ->> 'workflow', value ->> 'limit_key', unstuck_now() FROM json_each(:rows) WHERE TRUE
ON CONFLICT (tenant, queue, workflow, limit_key) DO NOTHING
