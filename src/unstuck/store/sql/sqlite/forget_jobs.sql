DELETE FROM unstuck_jobs WHERE id IN (SELECT value FROM json_each(:jobs))
