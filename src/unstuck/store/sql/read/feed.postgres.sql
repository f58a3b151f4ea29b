-- The feed's positions.

-- name: sequence
-- Only here: SQLite's ids are in the order of the commits already. See schema/postgres/repeatable/5_feed.sql.
SELECT unstuck_sequence(:most, :kept) AS taken

-- name: feed_is_restored
-- Only here: see schema/postgres/repeatable/5_feed.sql.
SELECT pg_snapshot_xmax(pg_current_snapshot()) < since AS is_restored FROM unstuck_sequencer

-- name: feed_reach
-- How far the feed goes, and how far the next page: here positions have no gaps.
SELECT era, position, floor, LEAST(position, CAST(:after AS BIGINT) + :most) AS through FROM unstuck_sequencer

-- name: forget_feed
-- One statement, so that nobody who stops in the middle keeps the sequencer's row locked.
WITH gone AS (
    DELETE FROM unstuck_feed
     WHERE last = ANY (ARRAY(
           SELECT oldest.last
             FROM (SELECT last, at FROM unstuck_feed ORDER BY last LIMIT :batch OFFSET :past) AS oldest
            WHERE oldest.at <= (SELECT unstuck_now() - :kept)))
    RETURNING last
)
UPDATE unstuck_sequencer
   SET floor = GREATEST(floor, (SELECT MAX(last) FROM gone))
 WHERE EXISTS (SELECT 1 FROM gone)
RETURNING (SELECT COUNT(*) FROM gone) AS gone
