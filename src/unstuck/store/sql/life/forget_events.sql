DELETE FROM unstuck_events WHERE job {in :jobs BIGINT}
