DELETE FROM unstuck_steps WHERE job IN (SELECT value FROM json_each(:jobs))
