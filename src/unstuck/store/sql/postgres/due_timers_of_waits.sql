-- Of these jobs the timers of their waits that came due.
SELECT DISTINCT t.due_at, t.job
  FROM unnest(CAST(:jobs AS BIGINT[])) AS r (job)
 CROSS JOIN LATERAL (SELECT until_at FROM unstuck_waits WHERE job = r.job OFFSET 0) AS w
 CROSS JOIN LATERAL (
       SELECT due_at, job
         FROM unstuck_timers
        WHERE kind = 'wait' AND due_at = w.until_at AND job = r.job AND due_at <= (SELECT unstuck_now())
       OFFSET 0) AS t
