-- The engine's time, and what was to happen at an instant of the database's clock.

-- name: now
SELECT unstuck_now() AS now

-- name: ahead
SELECT unstuck_ahead() AS ahead

-- name: clock_stand
SELECT ahead, leaps, leap, leapt_at, noticed FROM unstuck_clock

-- name: move_clock
UPDATE unstuck_clock
   SET ahead = :ahead, leaps = leaps + 1, leap = :leap, leapt_at = unstuck_now() - :correction, noticed = :by

-- name: wrong_appointments
-- Of a clock that leaps a thousand times each is looked at a thousand times; of one that does not, never.
SELECT DISTINCT t.job
  FROM unstuck_timers t
 WHERE t.appointed IS NOT NULL AND t.due_at <> t.appointed + (SELECT unstuck_ahead()) AND t.job > :after
 ORDER BY t.job
 LIMIT :batch

-- name: lock_appointed
SELECT id AS job FROM unstuck_jobs WHERE id {in :jobs BIGINT} ORDER BY id {lock FOR NO KEY UPDATE SKIP LOCKED}
