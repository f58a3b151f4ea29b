-- By the jobs' own names, while they are still there. OFFSET 0: job by job, however few letters the planner believes in.
DELETE FROM unstuck_letters
 WHERE id = ANY (ARRAY(
       SELECT sent.id
         FROM unstuck_jobs j
        CROSS JOIN LATERAL (
              SELECT l.id FROM unstuck_letters l WHERE l.tenant = j.tenant AND l.address = 'job:' || j.uid OFFSET 0) AS sent
        WHERE j.id = ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:jobs AS json))))))
