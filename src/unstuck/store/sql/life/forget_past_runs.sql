DELETE FROM unstuck_past_runs WHERE job {in :jobs BIGINT}
