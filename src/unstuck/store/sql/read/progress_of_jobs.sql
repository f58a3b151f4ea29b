-- Of several jobs, where it is short enough for a list.
SELECT j.uid, p.value
  FROM unstuck_jobs j
  JOIN unstuck_progress p ON p.job = j.id
 WHERE j.uid {in :uids TEXT} AND j.tenant = :tenant AND LENGTH(p.value) <= :longest
