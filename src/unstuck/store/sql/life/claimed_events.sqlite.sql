INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
SELECT a.job, a.event_count, a.claimed_at, 'claimed', a.run, a.token, :data
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value
