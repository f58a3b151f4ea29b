UPDATE unstuck_jobs SET on_hold = 1 WHERE id IN (SELECT value ->> 'job' FROM json_each(:rows))
