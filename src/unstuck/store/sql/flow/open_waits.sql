-- The oldest first.
SELECT w.*, j.uid, j.workflow
  FROM unstuck_waits w
  JOIN unstuck_jobs j ON j.id = w.job
 WHERE w.tenant = :tenant AND w.kind = :kind AND w.answer IS NULL
   AND (w.asked_at, w.job) > (CAST(:after_at AS BIGINT), CAST(:after_job AS BIGINT))
 ORDER BY w.asked_at, w.job
 LIMIT :most
