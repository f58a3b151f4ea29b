DELETE FROM unstuck_steps WHERE job {in :jobs BIGINT}
