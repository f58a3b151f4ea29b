DELETE FROM unstuck_dependencies WHERE job {in :jobs BIGINT}
