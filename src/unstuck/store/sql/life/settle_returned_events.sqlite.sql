INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
SELECT d.job, d.event_count, d.finished_at, 'completed', d.run, d.token, r.value ->> 'data'
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_done d ON d.job = r.value ->> 'job'
