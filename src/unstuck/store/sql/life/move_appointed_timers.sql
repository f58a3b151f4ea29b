UPDATE unstuck_timers AS t
   SET due_at = t.appointed + unstuck_ahead()
 WHERE t.job {in :jobs BIGINT} AND t.appointed IS NOT NULL
