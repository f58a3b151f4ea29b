-- Of each of these jobs what its present run asked for last.
SELECT w.*
  FROM unnest(CAST(:jobs AS BIGINT[])) AS r (job)
 CROSS JOIN LATERAL (
       SELECT w.*
         FROM unstuck_jobs j
         JOIN unstuck_waits w ON w.job = j.id AND w.run = j.run
        WHERE j.id = r.job
        ORDER BY w.token DESC
        LIMIT 1) AS w
