DELETE FROM unstuck_timers
 WHERE kind = 'expire' AND (due_at, job) IN (SELECT value ->> 'due_at', value ->> 'job' FROM json_each(:rows))
RETURNING job
