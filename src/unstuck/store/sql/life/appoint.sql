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
