DELETE FROM unstuck_jobs WHERE id {in :jobs BIGINT}
