SELECT q.duty, q.item, q.since_at, q.tried_at, q.tries, q.error, q.by,
       j.uid, j.workflow, t.name AS target, COALESCE(j.tenant, t.tenant) AS tenant
  FROM unstuck_quarantine q
  LEFT JOIN unstuck_jobs j ON j.id = q.item AND q.duty <> 'target'
  LEFT JOIN unstuck_targets t ON t.id = q.item AND q.duty = 'target'
 WHERE (q.duty, q.item) > (:after_duty, :after_item)
   AND (CAST(:tenant AS TEXT) IS NULL OR COALESCE(j.tenant, t.tenant) = CAST(:tenant AS TEXT))
   AND (CAST(:job AS TEXT) IS NULL OR j.uid = CAST(:job AS TEXT))
 ORDER BY q.duty, q.item
 LIMIT :most
