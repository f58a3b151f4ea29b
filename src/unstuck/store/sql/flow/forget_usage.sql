DELETE FROM unstuck_usage WHERE job {in :jobs BIGINT}
