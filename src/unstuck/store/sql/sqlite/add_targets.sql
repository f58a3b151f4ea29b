INSERT INTO unstuck_targets (tenant, name, named_at)
SELECT value ->> 'tenant', value ->> 'name', unstuck_now() FROM json_each(:rows) WHERE TRUE
ON CONFLICT (tenant, name) DO NOTHING
