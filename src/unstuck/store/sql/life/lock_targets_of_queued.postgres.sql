-- Of jobs at rest. One that somebody holds is skipped, and with it what stands there: it comes again.
SELECT id
  FROM unstuck_targets
 WHERE id = ANY (ARRAY(SELECT j.target FROM unstuck_jobs j WHERE j.id = ANY (CAST(:jobs AS BIGINT[])) AND j.target IS NOT NULL))
 ORDER BY id
   FOR NO KEY UPDATE SKIP LOCKED
