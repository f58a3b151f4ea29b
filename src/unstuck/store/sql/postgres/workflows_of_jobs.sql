SELECT id AS job, tenant, workflow FROM unstuck_jobs WHERE id = ANY (CAST(:jobs AS BIGINT[]))
