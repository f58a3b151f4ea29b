SELECT j.uid, e.number, e.kind, e.at, e.run, e.token, e.data
  FROM unstuck_jobs j
  JOIN unstuck_events e ON e.job = j.id AND e.number > :after
 WHERE j.uid = :uid AND j.tenant = :tenant
 ORDER BY e.number
 LIMIT :most
