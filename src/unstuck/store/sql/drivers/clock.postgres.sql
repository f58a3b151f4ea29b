-- The engine's time, and what was to happen at an instant of the database's clock.

-- name: read_clock
-- Not called `now`: it is read in order to be judged.
SELECT unstuck_now() AS reading, ahead, leaps, leap, leapt_at FROM unstuck_clock

-- name: lock_clock
SELECT one FROM unstuck_clock FOR UPDATE

-- name: keep_time
SELECT unstuck_keep_time() AS ahead

-- name: last_reading
-- What a worker of this boot saw last. A look at all of them, once in a worker's life.
SELECT beat_at, boot_at FROM unstuck_workers WHERE boot_id = :boot_id AND boot_at IS NOT NULL ORDER BY beat_at DESC LIMIT 1

-- name: vouchers
-- A worker of another machine whose last renewal was by the clock as it is now, and not by what the one who asks expected: of a leap forward it
-- is later than that, of one backward not in the future. When the clock has really leapt its renewal fails first.
SELECT w.id
  FROM unstuck_workers w
 WHERE w.ended_at IS NULL AND w.boot_id <> :boot_id AND w.lease_until > unstuck_now() AND w.beat_at <= unstuck_now()
   AND w.beat_at - w.started_at > :settled
   AND (w.beat_at > CAST(:expected AS BIGINT) + :tolerance OR unstuck_now() < CAST(:expected AS BIGINT))
 LIMIT 1
