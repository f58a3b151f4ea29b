SELECT j.uid, e.n, e.kind, e.at, e.run, e.token, e.data
  FROM unstuck_jobs j
  JOIN unstuck_events e ON e.job = j.id AND e.n > :after
 WHERE j.uid = :uid AND j.tenant = :tenant
 ORDER BY e.n
 LIMIT :most
