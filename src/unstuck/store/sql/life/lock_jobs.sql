-- Who is busy comes next time.
SELECT id FROM unstuck_jobs WHERE id {in :jobs BIGINT} ORDER BY id {lock FOR NO KEY UPDATE SKIP LOCKED}
