-- Whom to try again, alone: the one that has waited longest for it first. The number of entries is that of troubles, not of jobs.
SELECT item FROM unstuck_quarantine WHERE duty = :duty ORDER BY tried_at, item LIMIT :batch
