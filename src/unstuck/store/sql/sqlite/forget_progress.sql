DELETE FROM unstuck_progress WHERE job IN (SELECT value FROM json_each(:jobs))
