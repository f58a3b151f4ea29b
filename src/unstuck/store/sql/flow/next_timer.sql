-- How long until the first of them comes due, in microseconds; below zero where it is overdue. What is set aside is not counted.
SELECT t.due_at - unstuck_now() AS ahead
  FROM unstuck_timers t
 WHERE t.kind = :kind AND (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = :kind AND q.item = t.job) IS NULL
 ORDER BY t.due_at, t.job
 LIMIT 1
