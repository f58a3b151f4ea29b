-- One, without its event; what is about a job says whose it is.
INSERT INTO unstuck_news (tenant, queue, workflow, target, worker, job, told_at)
SELECT COALESCE(:tenant, j.tenant), COALESCE(:queue, j.queue), COALESCE(:workflow, j.workflow),
       COALESCE(:target, (SELECT g.name FROM unstuck_targets g WHERE g.id = j.target)), :worker, j.uid, unstuck_now()
  FROM (SELECT :job AS id) AS r
  LEFT JOIN unstuck_jobs j ON j.id = r.id
RETURNING number, told_at
