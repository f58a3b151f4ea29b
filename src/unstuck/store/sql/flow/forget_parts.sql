DELETE FROM unstuck_parts WHERE job {in :jobs BIGINT}
