UPDATE unstuck_running SET awaited = 1 WHERE job IN (SELECT value FROM json_each(:jobs)) AND awaited = 0
