-- What was to happen at an instant of the database's clock, after a leap.

-- name: appoint
-- These jobs were given an instant of the clock: their timers move with it.
WITH timer AS (
    SELECT 'start' AS kind, available_at AS due_at, id AS job FROM unstuck_jobs WHERE id {in :jobs BIGINT} AND available_at > created_at
     UNION ALL
    SELECT 'expire', expires_at, id FROM unstuck_jobs WHERE id {in :jobs BIGINT} AND available_at > created_at
)
UPDATE unstuck_timers AS t
   SET appointed = t.due_at - unstuck_ahead()
  FROM timer
 WHERE t.kind = timer.kind AND t.due_at = timer.due_at AND t.job = timer.job

-- name: clock_unmoved
-- Whether appointments are to be moved; `is_settled`: nobody can be writing one by the `ahead` of before any more.
SELECT leapt_at < unstuck_now() - CAST(:writing AS BIGINT) AS is_settled, ahead FROM unstuck_clock WHERE moved <> ahead

-- name: appointments_moved
UPDATE unstuck_clock SET moved = :ahead

-- name: move_appointed_jobs
UPDATE unstuck_jobs AS j
   SET available_at = COALESCE((SELECT t.appointed + unstuck_ahead() FROM unstuck_timers t
                                 WHERE t.job = j.id AND t.kind = 'start' AND t.appointed IS NOT NULL), j.available_at),
       expires_at = COALESCE((SELECT t.appointed + unstuck_ahead() FROM unstuck_timers t
                               WHERE t.job = j.id AND t.kind = 'expire' AND t.appointed IS NOT NULL AND t.due_at = j.expires_at), j.expires_at)
 WHERE j.id {in :jobs BIGINT}

-- name: move_appointed_waits
UPDATE unstuck_waits AS w
   SET until_at = t.appointed + unstuck_ahead()
  FROM unstuck_timers t
 WHERE t.job {in :jobs BIGINT} AND t.kind = 'wait' AND t.appointed IS NOT NULL
   AND w.job = t.job AND w.until_at = t.due_at AND w.answer IS NULL

-- name: move_appointed_timers
UPDATE unstuck_timers AS t
   SET due_at = t.appointed + unstuck_ahead()
 WHERE t.job {in :jobs BIGINT} AND t.appointed IS NOT NULL
