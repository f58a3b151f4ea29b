DELETE FROM unstuck_progress WHERE job {in :jobs BIGINT}
