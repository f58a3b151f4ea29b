DELETE FROM unstuck_parts WHERE job IN (SELECT value FROM json_each(:jobs))
