SELECT policy FROM unstuck_jobs WHERE id = :job
