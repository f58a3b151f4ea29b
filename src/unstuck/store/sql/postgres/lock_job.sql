-- Not FOR UPDATE: nothing here changes the key, and nobody who only reads it should wait.
SELECT id FROM unstuck_jobs WHERE id = :job FOR NO KEY UPDATE
