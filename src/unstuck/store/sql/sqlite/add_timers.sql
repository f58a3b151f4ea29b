INSERT INTO unstuck_timers (kind, due_at, job, route)
SELECT value ->> 'kind', value ->> 'due_at', value ->> 'job', value ->> 'route' FROM json_each(:rows) WHERE TRUE
ON CONFLICT (kind, due_at, job) DO NOTHING
