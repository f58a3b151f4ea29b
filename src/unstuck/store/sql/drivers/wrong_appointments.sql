-- Of a clock that leaps a thousand times each is looked at a thousand times; of one that does not, never.
SELECT DISTINCT t.job
  FROM unstuck_timers t
 WHERE t.appointed IS NOT NULL AND t.due_at <> t.appointed + (SELECT unstuck_ahead()) AND t.job > :after
 ORDER BY t.job
 LIMIT :batch
