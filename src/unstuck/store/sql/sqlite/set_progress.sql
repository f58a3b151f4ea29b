INSERT INTO unstuck_progress (job, token, value, at)
SELECT value ->> 'job', value ->> 'token', value ->> 'progress', unstuck_now() FROM json_each(:rows) WHERE true
ON CONFLICT (job) DO UPDATE SET token = excluded.token, value = excluded.value, at = excluded.at
