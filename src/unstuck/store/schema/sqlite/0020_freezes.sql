-- 0: it was past its grace in a process that was silent as a whole, and nothing says whose doing that was.
ALTER TABLE unstuck_stucks ADD COLUMN is_proven INTEGER NOT NULL DEFAULT 1;
