-- The jobs that wait, and of newcomers also what they wait for and has not ended: at rest it ends under this lock.
SELECT j.id
  FROM unstuck_jobs j
 WHERE j.id = ANY (CAST(:jobs AS BIGINT[]) || ARRAY(
       SELECT d.on_job
         FROM unstuck_dependencies d
        WHERE d.job = ANY (CAST(:newcomers AS BIGINT[]))
          AND NOT EXISTS (SELECT 1 FROM unstuck_done e WHERE e.job = d.on_job)))
 ORDER BY j.id
   FOR NO KEY UPDATE SKIP LOCKED
