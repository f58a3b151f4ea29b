SELECT DISTINCT j.target AS id
  FROM (SELECT job FROM unstuck_timers
         WHERE kind = 'wait' AND due_at <= (SELECT unstuck_now()) ORDER BY due_at, job LIMIT :batch) AS t
  JOIN unstuck_jobs j ON j.id = t.job
 WHERE j.target IS NOT NULL
