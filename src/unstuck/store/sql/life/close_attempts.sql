DELETE FROM unstuck_running WHERE job {in :jobs BIGINT}
