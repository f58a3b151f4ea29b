-- By the jobs' own words, while they are still there: no index leads from a job to its tags.
DELETE FROM unstuck_tags
 WHERE (tenant, tag, job) IN (SELECT j.tenant, tag.value, j.id
                                FROM json_each(:jobs) AS r
                                CROSS JOIN unstuck_jobs j ON j.id = r.value
                                CROSS JOIN json_each(j.tags) AS tag)
