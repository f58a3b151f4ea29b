UPDATE unstuck_jobs SET losses = 0 WHERE id {in :jobs BIGINT} AND losses > 0
