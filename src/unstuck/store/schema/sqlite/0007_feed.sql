-- The global feed: every committed event once, in one order. Here there is one writer at a time, from its first statement to its
-- commit: ids are in the order of the commits, and an event's id is its position. AUTOINCREMENT never gives one out again.

-- One row. `era` names this feed in its cursors; positions up to `floor` are forgotten.
CREATE TABLE unstuck_sequencer (
    era   TEXT NOT NULL,
    floor INTEGER NOT NULL
);
INSERT INTO unstuck_sequencer (era, floor)
SELECT LOWER(HEX(RANDOMBLOB(4))), COALESCE((SELECT MAX(id) FROM unstuck_events), 0);
