-- Behind which place of the feed all that happened since then stands: what is in a row that was written before, happened before.
SELECT {greatest}(s.floor, COALESCE((SELECT MAX(f.last) FROM unstuck_feed f WHERE f.at < :since), 0)) AS place, s.floor FROM unstuck_sequencer s
