SELECT id FROM unstuck_jobs WHERE id = :job
