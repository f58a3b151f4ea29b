INSERT INTO unstuck_targets (tenant, name)
SELECT value ->> 'tenant', value ->> 'name' FROM json_each(:rows) WHERE TRUE
ON CONFLICT (tenant, name) DO NOTHING
