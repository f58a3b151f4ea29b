-- What WAITING jobs wait for and has not come: one row each, none for a job whose answer is there. Only the wait that a run asked for
-- last can be open: the others of a long loop are not read.
SELECT w.*
  FROM unnest(CAST(:jobs AS BIGINT[])) AS r (job)
 CROSS JOIN LATERAL (SELECT id, run FROM unstuck_jobs WHERE id = r.job AND state = 'WAITING' LIMIT 1) AS j
 CROSS JOIN LATERAL (
       SELECT * FROM unstuck_waits WHERE job = j.id AND run = j.run ORDER BY token DESC LIMIT 1) AS w
 WHERE w.answer IS NULL
 ORDER BY w.job
