-- Behind which place of the feed all that happened since then stands: here there is no index by time, so all of the feed is looked through.
SELECT floor AS place, floor, :since AS since FROM unstuck_sequencer
