-- How far the feed goes, and how far the next page: a position is an event's id here, and those of forgotten jobs are gaps.
WITH feed AS (
    SELECT era, MAX(floor, COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'unstuck_events'), 0)) AS position, floor
      FROM unstuck_sequencer
)
SELECT era, position, floor,
       COALESCE((SELECT id FROM unstuck_events WHERE id > :after ORDER BY id LIMIT 1 OFFSET :most - 1), position) AS through
  FROM feed
