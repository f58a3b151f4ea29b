UPDATE unstuck_jobs SET on_hold = 0 WHERE id {in :jobs BIGINT}
