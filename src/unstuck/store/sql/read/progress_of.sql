SELECT p.value
  FROM unstuck_jobs j
  JOIN unstuck_progress p ON p.job = j.id
 WHERE j.uid = :uid AND j.tenant = :tenant
