-- FOR SHARE makes the fence hold until the commit: a settle waits for this, or this finds nothing.
INSERT INTO unstuck_progress (job, token, value, at)
SELECT job, token, :value, unstuck_now()
  FROM (SELECT job, token FROM unstuck_running
         WHERE job = :job AND token = :token AND claim = :claim FOR SHARE) AS attempt
ON CONFLICT (job) DO UPDATE SET token = excluded.token, value = excluded.value, at = excluded.at
