SELECT id
  FROM unstuck_targets
 WHERE id = ANY (ARRAY(SELECT j.target
                         FROM (SELECT job FROM unstuck_timers
                                WHERE kind = 'wait' AND due_at <= (SELECT unstuck_now())
                                ORDER BY due_at, job LIMIT :batch) AS t
                         JOIN unstuck_jobs j ON j.id = t.job
                        WHERE j.target IS NOT NULL))
 ORDER BY id
   FOR NO KEY UPDATE
