-- The targets of these jobs, those in use at this instant left out.
SELECT id
  FROM unstuck_targets
 WHERE id {among} SELECT j.target FROM unstuck_jobs j WHERE j.id {in :jobs BIGINT} AND j.target IS NOT NULL{end}
 ORDER BY id
   {lock FOR NO KEY UPDATE SKIP LOCKED}
