-- With one writer a look is as good as a lock.
SELECT j.id FROM json_each(:jobs) AS r CROSS JOIN unstuck_jobs j ON j.id = r.value
