INSERT INTO unstuck_done (job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result)
SELECT a.job, a.route, a.run, 'COMPLETED', a.token, a.event_count + 1, a.worker, a.claimed_at, :now,
       r.value ->> 'duration_ms', r.value ->> 'result'
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value ->> 'job'
