-- Rows of the queue that are taken, whoever needs them.

-- name: take_line
DELETE FROM unstuck_line WHERE target = :target AND place IN (:place, :first) AND job = :job

-- name: take_line_rows
DELETE FROM unstuck_line {matching :rows (target BIGINT, place BIGINT, job BIGINT)}
RETURNING {returned job}

-- name: take_ready
DELETE FROM unstuck_ready WHERE route = :route AND rank = :rank AND job = :job

-- name: take_timer
DELETE FROM unstuck_timers WHERE kind = :kind AND due_at = :due_at AND job = :job

-- name: take_whole_timer
-- By somebody who puts it back: a sweep whose snapshot is older than that does not find the new one.
DELETE FROM unstuck_timers WHERE kind = 'start' AND due_at = :due_at AND job = :job
RETURNING kind, due_at, job, route, appointed

-- name: take_timers
DELETE FROM unstuck_timers {matching :rows (due_at BIGINT, job BIGINT)} AND kind = :kind
RETURNING {returned job}

-- name: take_entries
-- By their numbers; what somebody else works off at this instant is left to him.
DELETE FROM unstuck_inbox
 WHERE seq {among} SELECT seq FROM unstuck_inbox WHERE seq {in :entries BIGINT} ORDER BY seq {lock FOR UPDATE SKIP LOCKED} {end}
RETURNING seq, target, job

-- name: take_inbox
-- SKIP LOCKED: several workers take different entries, and nobody waits.
DELETE FROM unstuck_inbox
 WHERE seq {among} SELECT seq FROM unstuck_inbox WHERE seq > :after ORDER BY seq LIMIT :batch {lock FOR UPDATE SKIP LOCKED} {end}
RETURNING seq, target, job

-- name: inbox_entries
SELECT seq, target, job FROM unstuck_inbox WHERE seq > :after ORDER BY seq LIMIT :batch

-- name: inbox_waits
SELECT seq FROM unstuck_inbox WHERE seq > :after ORDER BY seq LIMIT 1

-- name: add_inbox
INSERT INTO unstuck_inbox (target, job)
SELECT target, job FROM {rows :rows AS r (target BIGINT, job BIGINT)}
