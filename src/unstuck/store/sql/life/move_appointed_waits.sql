UPDATE unstuck_waits AS w
   SET until_at = t.appointed + unstuck_ahead()
  FROM unstuck_timers t
 WHERE t.job {in :jobs BIGINT} AND t.kind = 'wait' AND t.appointed IS NOT NULL
   AND w.job = t.job AND w.until_at = t.due_at AND w.answer IS NULL
