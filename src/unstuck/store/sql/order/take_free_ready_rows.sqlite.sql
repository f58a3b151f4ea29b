DELETE FROM unstuck_ready
 WHERE (route, rank, job) IN (SELECT value ->> 'route', value ->> 'rank', value ->> 'job' FROM json_each(:rows))
RETURNING job
