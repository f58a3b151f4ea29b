SELECT j.id AS job, j.tenant, j.workflow FROM json_each(:jobs) AS r CROSS JOIN unstuck_jobs j ON j.id = r.value
