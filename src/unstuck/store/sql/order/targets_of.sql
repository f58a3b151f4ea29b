SELECT DISTINCT target FROM unstuck_jobs WHERE id {in :jobs BIGINT} AND target IS NOT NULL
