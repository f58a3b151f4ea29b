-- WHERE true: or the parser would take ON for the start of a join.
INSERT INTO unstuck_outputs AS o (job, token, output)
SELECT value ->> 'job', value ->> 'token', value ->> 'output' FROM json_each(:rows) WHERE true
ON CONFLICT (job, token) DO UPDATE SET output = SUBSTR(COALESCE(o.output, '') || excluded.output, 1, :cap)
