-- Since when an entry stands there: one that nobody works off must be noticed. By default, so that nobody who writes one can forget it.
ALTER TABLE unstuck_inbox ADD COLUMN at BIGINT NOT NULL DEFAULT unstuck_now();
