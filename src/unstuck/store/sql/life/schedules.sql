-- Schedules: what runs by the clock, and what was done about each tick.

-- name: schedule
SELECT s.*, unstuck_now() AS now, unstuck_ahead() AS ahead FROM unstuck_schedules s WHERE s.tenant = :tenant AND s.name = :name

-- name: lock_schedule
SELECT s.*, unstuck_now() AS now, unstuck_ahead() AS ahead FROM unstuck_schedules s WHERE s.tenant = :tenant AND s.name = :name {lock FOR UPDATE}

-- name: lock_free_schedule
-- Nothing while another worker fires it: that one does what is to be done.
SELECT s.*, unstuck_now() AS now, unstuck_ahead() AS ahead FROM unstuck_schedules s WHERE s.id = :number {lock FOR UPDATE SKIP LOCKED}

-- name: schedules
SELECT s.*, unstuck_now() AS now, unstuck_ahead() AS ahead
  FROM unstuck_schedules s
 WHERE (CAST(:tenant AS TEXT) IS NULL OR s.tenant = CAST(:tenant AS TEXT)) AND s.id > :after AND s.removed_at IS NULL
 ORDER BY s.id
 LIMIT :most

-- name: count_schedules
SELECT COUNT(*) AS schedules FROM unstuck_schedules WHERE tenant = :tenant AND removed_at IS NULL

-- name: due_schedules
SELECT s.*, (SELECT unstuck_now()) AS now, unstuck_ahead() AS ahead
  FROM unstuck_schedules s
 WHERE s.due_at <= (SELECT unstuck_now())
 ORDER BY s.due_at, s.id
 LIMIT :batch

-- name: next_schedule
-- MIN, and not the first row: that is found by the index, whatever the table is full of. What is still to be asked to stop is due now.
SELECT (SELECT MIN(due_at) FROM unstuck_schedules WHERE due_at IS NOT NULL) AS due_at,
       EXISTS (SELECT 1 FROM unstuck_firings WHERE cancels = 1) AS has_cancels, unstuck_now() AS now

-- name: silent_schedules
SELECT s.*, (SELECT unstuck_now()) AS now, unstuck_ahead() AS ahead
  FROM unstuck_schedules s
 WHERE (s.due_at <= (SELECT unstuck_now()) - CAST(:late AS BIGINT) OR (s.quiet >= :quiet AND s.due_at IS NOT NULL))
   AND (CAST(:tenant AS TEXT) IS NULL OR s.tenant = CAST(:tenant AS TEXT))
 ORDER BY s.due_at, s.id
 LIMIT :most

-- name: schedule_states
SELECT state, COUNT(*) AS schedules
  FROM (SELECT CASE WHEN s.paused_at IS NOT NULL AND (s.paused_until IS NULL OR s.paused_until > (SELECT unstuck_now())) THEN 'PAUSED'
                    WHEN s.next_tick IS NULL THEN 'ENDED'
                    ELSE 'ACTIVE' END AS state
          FROM unstuck_schedules s
         WHERE s.removed_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR s.tenant = CAST(:tenant AS TEXT))
         LIMIT :looked) AS few_of
 GROUP BY state

-- name: add_schedule
INSERT INTO unstuck_schedules (tenant, name, owner, workflow, body, created_at, created_by, changed_at, changed_by)
SELECT :tenant, :name, CAST(:owner AS TEXT), :workflow, :body, now.at, :by, now.at, :by
  FROM (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
ON CONFLICT (tenant, name) DO NOTHING
RETURNING id

-- name: change_schedule
UPDATE unstuck_schedules
   SET owner = CAST(:owner AS TEXT), workflow = :workflow, body = :body, version = version + 1, changed_at = unstuck_now(), changed_by = :by,
       removed_at = NULL, quiet = 0
 WHERE id = :number

-- name: remove_schedule
-- Its row stays: a rollback brings it back, with what it knows of its ticks.
UPDATE unstuck_schedules
   SET removed_at = unstuck_now(), version = version + 1, changed_at = unstuck_now(), changed_by = :by, next_tick = NULL, appointed = NULL,
       due_at = NULL
 WHERE id = :number

-- name: pause_schedule
UPDATE unstuck_schedules
   SET paused_at = unstuck_now(), paused_until = CAST(:until AS BIGINT), paused_by = :by, pause_reason = CAST(:reason AS TEXT), version = version + 1
 WHERE id = :number

-- name: unpause_schedule
UPDATE unstuck_schedules
   SET paused_at = NULL, paused_until = NULL, paused_by = NULL, pause_reason = NULL, version = version + 1, quiet = 0
 WHERE id = :number

-- name: expect_tick
UPDATE unstuck_schedules
   SET next_tick = CAST(:next_tick AS BIGINT), appointed = CAST(:appointed AS BIGINT), due_at = CAST(:due_at AS BIGINT)
 WHERE id = :number

-- name: decide_tick
UPDATE unstuck_schedules SET last_tick = :tick, quiet = :quiet WHERE id = :number

-- name: forget_cancels
-- Of a schedule that goes: nobody would find them, and everybody would look.
UPDATE unstuck_firings SET cancels = 0 WHERE schedule = :number AND cancels = 1

-- name: delete_schedule
DELETE FROM unstuck_schedules WHERE id = :number

-- name: close_firings
-- Whose job has ended, and no body of it may live: it is in nobody's way any more.
UPDATE unstuck_firings
   SET is_open = 0
 WHERE schedule = :number AND is_open = 1
   AND NOT EXISTS (SELECT 1 FROM unstuck_jobs j
                    WHERE j.uid = unstuck_firings.job
                      AND (NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id)
                           OR EXISTS (SELECT 1 FROM unstuck_body_marks m WHERE m.job = j.id)))

-- name: open_firings
SELECT f.id, f.tick, f.job, t.name AS target,
       CASE WHEN EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id) THEN 1 ELSE 0 END AS has_ended
  FROM unstuck_firings f
  JOIN unstuck_jobs j ON j.uid = f.job
  LEFT JOIN unstuck_targets t ON t.id = j.target
 WHERE f.schedule = :number AND f.is_open = 1
 ORDER BY f.id DESC
 LIMIT :most

-- name: add_firing
-- A tick that was decided about is not fired again; one that made no job may be made up for (:again).
INSERT INTO unstuck_firings (schedule, tick, kind, outcome, at, by, version, job, reason, ticks, first_tick, is_open, cancels)
SELECT :schedule, :tick, :kind, :outcome, unstuck_now(), CAST(:by AS TEXT), :version, CAST(:job AS TEXT), CAST(:reason AS TEXT), :ticks, :first_tick,
       CASE WHEN CAST(:job AS TEXT) IS NULL THEN 0 ELSE 1 END, :cancels
 WHERE TRUE
ON CONFLICT (schedule, tick) DO UPDATE
   SET kind = excluded.kind, outcome = excluded.outcome, at = excluded.at, by = excluded.by, version = excluded.version, job = excluded.job,
       reason = excluded.reason, ticks = excluded.ticks, first_tick = excluded.first_tick, is_open = excluded.is_open, cancels = excluded.cancels
 WHERE :again = 1 AND unstuck_firings.job IS NULL
RETURNING id

-- name: firing
SELECT f.*, s.tenant, s.name FROM unstuck_firings f JOIN unstuck_schedules s ON s.id = f.schedule WHERE f.schedule = :number AND f.tick = :tick

-- name: firings
SELECT f.* FROM unstuck_firings f WHERE f.schedule = :number AND f.id < :before ORDER BY f.id DESC LIMIT :most

-- name: overlapped
-- The jobs that a later firing of their schedule takes the place of, page by page, and nothing of those that have ended.
SELECT later.id AS firing, s.tenant, s.name, f.job, COALESCE(f.id, 0) AS place
  FROM unstuck_firings later
  JOIN unstuck_schedules s ON s.id = later.schedule
  LEFT JOIN unstuck_firings f ON f.schedule = later.schedule AND f.is_open = 1 AND f.id < later.id
       AND EXISTS (SELECT 1 FROM unstuck_jobs j WHERE j.uid = f.job AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id))
 WHERE later.cancels = 1 AND (later.id > :firing OR (later.id = :firing AND f.id > :place))
 ORDER BY later.id, f.id
 LIMIT :batch

-- name: overlap_cancelled
UPDATE unstuck_firings SET cancels = 0 WHERE id {in :firings BIGINT}

-- name: forget_firings
-- Never one whose job may still be in the way of the next.
DELETE FROM unstuck_firings
 WHERE id {among}
       SELECT f.id FROM unstuck_firings f
        WHERE f.at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT)
          AND NOT EXISTS (SELECT 1 FROM unstuck_jobs j
                           WHERE j.uid = f.job
                             AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id))
        ORDER BY f.at, f.id LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: wrong_schedules
SELECT 1 FROM unstuck_schedules WHERE due_at <> appointed + (SELECT unstuck_ahead()) LIMIT 1

-- name: move_appointed_schedules
UPDATE unstuck_schedules
   SET due_at = appointed + unstuck_ahead()
 WHERE id {among}
       SELECT id FROM unstuck_schedules WHERE due_at <> appointed + (SELECT unstuck_ahead()) ORDER BY id {lock FOR NO KEY UPDATE SKIP LOCKED}
       {end}
