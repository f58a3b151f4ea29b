INSERT INTO unstuck_tags (tenant, tag, job)
SELECT DISTINCT j.tenant, tag.value, j.id
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
  CROSS JOIN json_each(j.tags) AS tag
 WHERE j.tags IS NOT NULL
