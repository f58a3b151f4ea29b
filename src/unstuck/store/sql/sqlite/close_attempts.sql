DELETE FROM unstuck_running WHERE job IN (SELECT value FROM json_each(:jobs))
