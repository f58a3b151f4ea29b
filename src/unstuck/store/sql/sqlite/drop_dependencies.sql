DELETE FROM unstuck_dependencies WHERE job IN (SELECT value FROM json_each(:jobs))
