DELETE FROM unstuck_ready
 WHERE (route, rank, job) IN (SELECT j.route, j.rank, j.id
                                FROM json_each(:jobs) AS r
                                CROSS JOIN unstuck_jobs j ON j.id = r.value)
