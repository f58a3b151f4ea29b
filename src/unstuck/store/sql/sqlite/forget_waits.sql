DELETE FROM unstuck_waits WHERE job IN (SELECT value FROM json_each(:jobs))
