-- Who is busy comes next time.
SELECT id FROM unstuck_jobs WHERE id = ANY (CAST(:jobs AS BIGINT[])) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
