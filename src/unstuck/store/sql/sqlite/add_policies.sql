INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us)
SELECT value ->> 'digest', value ->> 'body', value ->> 'timeout_us', value ->> 'grace_us' FROM json_each(:rows) WHERE true
ON CONFLICT (digest) DO NOTHING
