-- name: hold_for_entry
-- WHERE TRUE: without it SQLite takes ON for a join's.
INSERT INTO unstuck_blacklist_held (entry, job)
SELECT r.entry, r.job FROM {rows :rows AS r (entry BIGINT, job BIGINT)} WHERE TRUE
ON CONFLICT (entry, job) DO NOTHING

-- name: mark_held
UPDATE unstuck_jobs SET on_hold = 1 WHERE id {in :jobs BIGINT}
