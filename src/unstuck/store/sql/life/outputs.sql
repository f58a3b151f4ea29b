SELECT o.token, o.output, o.stack
  FROM unstuck_jobs j
  JOIN unstuck_outputs o ON o.job = j.id AND o.token > :after AND o.token <= :upto
 WHERE j.uid = :uid AND j.tenant = :tenant
