-- FOR SHARE makes the fence hold until the commit: a settle waits for this, or this finds nothing.
INSERT INTO unstuck_outputs AS o (job, token, output)
SELECT job, token, :text
  FROM (SELECT job, token FROM unstuck_running
         WHERE job = :job AND token = :token AND claim = :claim FOR SHARE) AS attempt
ON CONFLICT (job, token) DO UPDATE SET output = SUBSTR(COALESCE(o.output, '') || excluded.output, 1, :cap)
