-- By the jobs' own words, while they are still there: no index leads from a job to its tags.
DELETE FROM unstuck_tags AS t
 USING unstuck_jobs AS j
 CROSS JOIN LATERAL json_array_elements_text(CAST(j.tags AS json)) AS tag (value)
 WHERE j.id {in :jobs BIGINT}
   AND t.tenant = j.tenant AND t.tag = tag.value AND t.job = j.id
