-- Of these jobs the timers of their waits that came due.
SELECT DISTINCT t.due_at, t.job
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_waits w ON w.job = r.value
  CROSS JOIN unstuck_timers t ON t.kind = 'wait' AND t.due_at = w.until_at AND t.job = w.job
 WHERE t.due_at <= unstuck_now()
