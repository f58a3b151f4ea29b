INSERT INTO unstuck_progress (job, token, value, at)
SELECT job, token, :value, unstuck_now() FROM unstuck_running WHERE job = :job AND token = :token AND claim = :claim
ON CONFLICT (job) DO UPDATE SET token = excluded.token, value = excluded.value, at = excluded.at
