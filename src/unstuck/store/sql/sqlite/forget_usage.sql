DELETE FROM unstuck_usage WHERE job IN (SELECT value FROM json_each(:jobs))
