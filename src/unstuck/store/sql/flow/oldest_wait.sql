-- run: of the job whose address it is; a topic has none.
SELECT w.job, w.run, w.key, j.uid
  FROM unstuck_waits w
  JOIN unstuck_jobs j ON j.id = w.job
 WHERE w.tenant = :tenant AND w.address = :address AND w.name = :event AND w.answer IS NULL
   AND (CAST(:run AS BIGINT) IS NULL OR w.run = CAST(:run AS BIGINT))
 ORDER BY w.asked_at, w.job
 LIMIT 1
