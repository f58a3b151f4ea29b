-- When a route or target was last meant by somebody who submits, to the day. What nobody has meant for long, and no job names, goes.
-- 0: made by somebody who does not know of this yet.
ALTER TABLE unstuck_routes ADD COLUMN named_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX unstuck_routes_named ON unstuck_routes (named_at, id);
ALTER TABLE unstuck_targets ADD COLUMN named_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX unstuck_targets_named ON unstuck_targets (named_at, id);
