INSERT INTO unstuck_running (job, token, claim, worker, route, policy, target, run, event_count, claimed_at)
SELECT j.id, j.token + 1, :claim, :worker, j.route, j.policy, j.target, j.run, j.event_count + 1, :now
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
