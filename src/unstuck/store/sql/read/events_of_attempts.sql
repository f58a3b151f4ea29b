-- All events under these tokens: an attempt is what a claim opened and the next move under its token ended.
SELECT j.uid, e.number, e.kind, e.at, e.run, e.token, e.data
  FROM unstuck_jobs j
  JOIN unstuck_events e ON e.job = j.id
 WHERE j.uid = :uid AND j.tenant = :tenant AND e.token > :after AND e.token <= :upto
 ORDER BY e.number
