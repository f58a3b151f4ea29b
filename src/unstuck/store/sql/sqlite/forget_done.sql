DELETE FROM unstuck_done WHERE job IN (SELECT value FROM json_each(:jobs)) RETURNING job
