DELETE FROM unstuck_waits WHERE job {in :jobs BIGINT}
