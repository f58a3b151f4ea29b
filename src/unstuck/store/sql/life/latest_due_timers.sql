-- Those that came due last, as due_timers gives the first: behind a backlog they need not wait for all of it.
SELECT t.due_at, t.job, (SELECT unstuck_now()) AS now
  FROM unstuck_timers t
 WHERE t.kind = :kind AND t.due_at <= (SELECT unstuck_now())
   AND CASE WHEN (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = :kind AND q.item = t.job) IS NULL THEN TRUE ELSE FALSE END
 ORDER BY t.due_at DESC, t.job DESC
 LIMIT :batch
