INSERT INTO unstuck_events (job, n, at, kind, run, token, data)
SELECT value ->> 'job', value ->> 'n', value ->> 'at', value ->> 'kind', value ->> 'run', value ->> 'token', value ->> 'data'
  FROM json_each(:rows)
