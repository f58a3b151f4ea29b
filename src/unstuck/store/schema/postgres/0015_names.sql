-- When a route or target was last meant by somebody who submits, to the day. What nobody has meant for long, and no job names, goes.
ALTER TABLE unstuck_routes ADD COLUMN named_at BIGINT NOT NULL DEFAULT unstuck_now();
CREATE INDEX unstuck_routes_named ON unstuck_routes (named_at, id);
ALTER TABLE unstuck_targets ADD COLUMN named_at BIGINT NOT NULL DEFAULT unstuck_now();
CREATE INDEX unstuck_targets_named ON unstuck_targets (named_at, id);
