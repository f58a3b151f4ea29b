-- The events stay with their jobs; only the feed no longer begins before these.
UPDATE unstuck_sequencer SET floor = :floor WHERE floor < :floor
