-- Timers that outlived their job; a start timer without a job goes when it fires.
DELETE FROM unstuck_timers
 WHERE kind = :kind AND due_at <= (SELECT unstuck_now())
   AND NOT EXISTS (SELECT 1 FROM unstuck_jobs j WHERE j.id = unstuck_timers.job)
