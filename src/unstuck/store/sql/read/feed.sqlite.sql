-- The feed's positions.

-- name: feed_reach
-- How far the feed goes, and how far the next page: a position is an event's id here, and those of forgotten jobs are gaps.
WITH feed AS (
    SELECT era, MAX(floor, COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'unstuck_events'), 0)) AS position, floor
      FROM unstuck_sequencer
)
SELECT era, position, floor,
       COALESCE((SELECT id FROM unstuck_events WHERE id > :after ORDER BY id LIMIT 1 OFFSET :most - 1), position) AS through
  FROM feed

-- name: feed_old
-- Of the next :batch positions those whose time is over. What a webhook has not seen stays, up to :held.
SELECT MAX(id) AS last, COUNT(*) AS old
  FROM (SELECT id, at FROM unstuck_events WHERE id > (SELECT floor FROM unstuck_sequencer) ORDER BY id LIMIT :batch)
 WHERE at <= unstuck_now() - :kept
   AND (at <= unstuck_now() - :held
        OR id <= COALESCE((SELECT MIN(position) FROM unstuck_webhooks WHERE position IS NOT NULL), id))

-- name: raise_feed_floor
-- The events stay with their jobs; only the feed no longer begins before these.
UPDATE unstuck_sequencer SET floor = :floor WHERE floor < :floor
