-- The targets of these jobs, those in use at this instant left out.
SELECT id
  FROM unstuck_targets
 WHERE id = ANY (ARRAY(SELECT j.target FROM unstuck_jobs j WHERE j.id = ANY (CAST(:jobs AS BIGINT[])) AND j.target IS NOT NULL))
 ORDER BY id
   FOR NO KEY UPDATE SKIP LOCKED
