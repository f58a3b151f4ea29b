-- Not FOR UPDATE: nothing here changes the key, and nobody who only reads it should wait.
SELECT id FROM unstuck_jobs WHERE id = :job {lock FOR NO KEY UPDATE}
