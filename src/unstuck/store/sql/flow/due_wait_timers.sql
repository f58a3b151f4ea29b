-- is_orphan: the timer has outlived its job.
SELECT t.due_at, t.job, (SELECT 1 FROM unstuck_jobs j WHERE j.id = t.job) IS NULL AS is_orphan, (SELECT unstuck_now()) AS now
  FROM unstuck_timers t
 WHERE t.kind = 'wait' AND t.due_at <= (SELECT unstuck_now()) AND (t.due_at, t.job) > (:after_at, :after_job)
   AND (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'wait' AND q.item = t.job) IS NULL
 ORDER BY t.due_at, t.job
 LIMIT :batch
