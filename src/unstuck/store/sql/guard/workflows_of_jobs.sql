SELECT id AS job, tenant, workflow FROM unstuck_jobs WHERE id {in :jobs BIGINT}
