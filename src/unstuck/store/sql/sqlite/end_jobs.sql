INSERT INTO unstuck_done (job, route, run, state, token, n, worker, claimed_at, finished_at, duration_ms, result,
                          error_type, error_message, late)
SELECT value ->> 'job', value ->> 'route', value ->> 'run', value ->> 'state', value ->> 'token', value ->> 'n',
       value ->> 'worker', value ->> 'claimed_at', value ->> 'finished_at', value ->> 'duration_ms', value ->> 'result',
       value ->> 'error_type', value ->> 'error_message', value ->> 'late'
  FROM json_each(:rows)
