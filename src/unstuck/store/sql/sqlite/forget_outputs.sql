DELETE FROM unstuck_outputs WHERE job IN (SELECT value FROM json_each(:jobs))
