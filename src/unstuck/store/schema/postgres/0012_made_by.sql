-- made_by: what of the engine made the job (Maker in model/job.py); NULL of one that a caller submitted. It says with which kind of key the job
-- is signed, and outlives what made it: a parent's row, a firing.
ALTER TABLE unstuck_jobs ADD COLUMN made_by TEXT COLLATE "C";
UPDATE unstuck_jobs SET made_by = 'replay' WHERE replay_of IS NOT NULL;
UPDATE unstuck_jobs SET made_by = 'schedule' WHERE uid IN (SELECT job FROM unstuck_firings WHERE job IS NOT NULL);
UPDATE unstuck_jobs SET made_by = 'parent' WHERE id IN (SELECT child FROM unstuck_children);
