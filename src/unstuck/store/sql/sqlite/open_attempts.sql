INSERT INTO unstuck_running (job, token, claim, worker, route, policy, target, run, n, claimed_at, overdue_at)
SELECT j.id, j.token + 1, :claim, :worker, j.route, j.policy, j.target, j.run, j.n + 1, :now, :now + p.timeout_us + p.grace_us
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
  JOIN unstuck_policies p ON p.id = j.policy
