INSERT INTO unstuck_ready (route, rank, job)
SELECT j.route, j.rank, j.id
  FROM (SELECT job FROM unstuck_timers
         WHERE kind = 'start' AND due_at <= :now ORDER BY due_at, job LIMIT :batch) AS due
  JOIN unstuck_jobs j ON j.id = due.job
