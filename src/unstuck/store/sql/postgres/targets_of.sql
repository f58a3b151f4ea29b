SELECT DISTINCT target FROM unstuck_jobs WHERE id = ANY (CAST(:jobs AS BIGINT[])) AND target IS NOT NULL
