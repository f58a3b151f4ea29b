INSERT INTO unstuck_outputs AS o (job, token, output)
SELECT job, token, output FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, token BIGINT, output TEXT)
ON CONFLICT (job, token) DO UPDATE SET output = SUBSTR(COALESCE(o.output, '') || excluded.output, 1, :cap)
