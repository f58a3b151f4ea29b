INSERT INTO unstuck_steps (job, name, ordinal, run, token, at, duration_ms, result)
SELECT r.value ->> 'job', r.value ->> 'name', r.value ->> 'ordinal', a.run, a.token, unstuck_now(),
       r.value ->> 'duration_ms', r.value ->> 'result'
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value ->> 'job'
 WHERE TRUE
ON CONFLICT (job, name, ordinal) DO NOTHING
