INSERT INTO unstuck_outputs AS o (job, token, output)
SELECT job, token, :text FROM unstuck_running WHERE job = :job AND token = :token AND claim = :claim
ON CONFLICT (job, token) DO UPDATE SET output = SUBSTR(COALESCE(o.output, '') || excluded.output, 1, :cap)
