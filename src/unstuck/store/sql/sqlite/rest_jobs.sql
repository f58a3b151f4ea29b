UPDATE unstuck_jobs AS j
   SET state = r.value ->> 'state', run = r.value ->> 'run', token = r.value ->> 'token', n = r.value ->> 'n',
       failures = r.value ->> 'failures', losses = r.value ->> 'losses', suspects = r.value ->> 'suspects',
       alone = r.value ->> 'alone', started = r.value ->> 'started', available_at = COALESCE(r.value ->> 'available_at', j.available_at),
       expires_at = r.value ->> 'expires_at', error_type = r.value ->> 'error_type',
       error_message = r.value ->> 'error_message'
  FROM json_each(:rows) AS r
 WHERE j.id = r.value ->> 'job'
