-- The feed's positions.

-- name: sequence
-- Only here: SQLite's ids are in the order of the commits already. See schema/postgres/repeatable/5_feed.sql.
-- Where webhooks follow, what nobody asked for gets its place for longer: they may have been away.
SELECT unstuck_sequence(:most, CASE WHEN EXISTS (SELECT 1 FROM unstuck_webhooks WHERE position IS NOT NULL) THEN GREATEST(CAST(:kept AS BIGINT), :held)
                                    ELSE :kept END) AS taken

-- name: feed_is_restored
-- Only here: see schema/postgres/repeatable/5_feed.sql.
SELECT pg_snapshot_xmax(pg_current_snapshot()) < since AS is_restored FROM unstuck_sequencer

-- name: feed_reach
-- How far the feed goes, and how far the next page: here positions have no gaps.
SELECT era, position, floor, LEAST(position, CAST(:after AS BIGINT) + :most) AS through FROM unstuck_sequencer

-- name: forget_feed
-- One statement, so that nobody who stops in the middle keeps the sequencer's row locked. What a webhook has not seen stays, up to :held.
WITH gone AS (
    DELETE FROM unstuck_feed
     WHERE last = ANY (ARRAY(
           SELECT oldest.last
             FROM (SELECT last, at FROM unstuck_feed ORDER BY last LIMIT :batch OFFSET :past) AS oldest
            WHERE oldest.at <= (SELECT unstuck_now() - :kept)
              AND (oldest.at <= (SELECT unstuck_now() - :held)
                   OR oldest.last <= COALESCE((SELECT MIN(position) FROM unstuck_webhooks WHERE position IS NOT NULL), oldest.last))))
    RETURNING last
)
UPDATE unstuck_sequencer
   SET floor = GREATEST(floor, (SELECT MAX(last) FROM gone))
 WHERE EXISTS (SELECT 1 FROM gone)
RETURNING (SELECT COUNT(*) FROM gone) AS gone
