-- How far the feed goes, and how far the next page: here positions have no gaps.
SELECT era, position, floor, LEAST(position, CAST(:after AS BIGINT) + :most) AS through FROM unstuck_sequencer
