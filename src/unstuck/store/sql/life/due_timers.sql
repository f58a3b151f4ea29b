-- Beyond the last that was looked at, but for those that could not be moved alone (their duty is called as their kind). (SELECT unstuck_now()) is
-- evaluated once, so the index on due_at can be used. CASE: of a bare IS NULL the planner thinks that it leaves next to nothing, and would rather sort
-- all that is due.
SELECT t.due_at, t.job, (SELECT unstuck_now()) AS now
  FROM unstuck_timers t
 WHERE t.kind = :kind AND t.due_at <= (SELECT unstuck_now()) AND (t.due_at, t.job) > (:after_due, :after_job)
   AND CASE WHEN (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = :kind AND q.item = t.job) IS NULL THEN TRUE ELSE FALSE END
 ORDER BY t.due_at, t.job
 LIMIT :batch
