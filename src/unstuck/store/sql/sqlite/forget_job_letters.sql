-- By the jobs' own names, while they are still there.
DELETE FROM unstuck_letters
 WHERE (tenant, address) IN (SELECT j.tenant, 'job:' || j.uid
                               FROM json_each(:jobs) AS r
                               CROSS JOIN unstuck_jobs j ON j.id = r.value)
