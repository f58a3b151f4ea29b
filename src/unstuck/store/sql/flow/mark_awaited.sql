UPDATE unstuck_running SET awaited = 1 WHERE job {in :jobs BIGINT} AND awaited = 0
