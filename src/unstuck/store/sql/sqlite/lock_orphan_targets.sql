-- There is one writer: nothing to lock.
SELECT DISTINCT j.target AS id
  FROM (SELECT job FROM unstuck_ready WHERE route = :route ORDER BY rank, job LIMIT :batch) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.job
 WHERE j.target IS NOT NULL
