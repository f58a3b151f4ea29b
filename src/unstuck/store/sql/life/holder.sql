-- Of one job: no index is asked for more than a row.
SELECT a.worker, a.job, a.token, a.claim
  FROM unstuck_jobs j
  JOIN unstuck_running a ON a.job = j.id
 WHERE j.uid = :uid AND j.tenant = :tenant
