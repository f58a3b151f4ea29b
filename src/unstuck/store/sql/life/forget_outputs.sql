DELETE FROM unstuck_outputs WHERE job {in :jobs BIGINT}
