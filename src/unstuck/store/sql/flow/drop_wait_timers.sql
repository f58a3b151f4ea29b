DELETE FROM unstuck_timers
 WHERE kind = 'wait' AND job = :job
   AND due_at IN (SELECT w.until_at FROM unstuck_waits w WHERE w.job = :job AND w.run = :run)
