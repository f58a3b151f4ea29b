-- Of these jobs the timers of their waits that came due.
SELECT DISTINCT t.due_at, t.job
  FROM {list :jobs AS r (job BIGINT)}
  {all_by_key unstuck_waits AS w ON w.job = r.job}
  {all_by_key unstuck_timers AS t ON t.kind = 'wait' AND t.due_at = w.until_at AND t.job = r.job AND t.due_at <= (SELECT unstuck_now())}
