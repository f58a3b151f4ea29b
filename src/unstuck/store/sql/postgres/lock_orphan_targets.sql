SELECT id
  FROM unstuck_targets
 WHERE id = ANY (ARRAY(SELECT j.target
                         FROM (SELECT job FROM unstuck_ready WHERE route = :route ORDER BY rank, job LIMIT :batch) AS r
                         JOIN unstuck_jobs j ON j.id = r.job
                        WHERE j.target IS NOT NULL))
 ORDER BY id
   FOR NO KEY UPDATE
