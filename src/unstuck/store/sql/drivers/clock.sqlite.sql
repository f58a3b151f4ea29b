-- The engine's time, and what was to happen at an instant of the database's clock.

-- name: read_clock
SELECT ahead, boot, anchor, COALESCE((SELECT MAX(beat_at) FROM unstuck_workers), 0) AS last_beat FROM unstuck_clock

-- name: anchor_clock
UPDATE unstuck_clock SET boot = :boot, anchor = :anchor, ahead = :ahead
