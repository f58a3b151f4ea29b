-- The events at the positions above :after up to :through; those of forgotten jobs are gone with them. :kinds is ',a,b,' or NULL.
SELECT e.id AS position, j.uid, j.tenant, j.queue, j.workflow, e.number, e.kind, e.at, e.run, e.token, e.data
  FROM unstuck_events e
 CROSS JOIN unstuck_jobs j ON j.id = e.job
 WHERE e.id > :after AND e.id <= :through
   AND (:tenant IS NULL OR j.tenant = :tenant)
   AND (:job IS NULL OR j.uid = :job)
   AND (:workflow IS NULL OR j.workflow = :workflow)
   AND {within j.queue j.workflow}
   AND (:kinds IS NULL OR INSTR(:kinds, ',' || e.kind || ',') > 0)
 ORDER BY e.id
 LIMIT :most
