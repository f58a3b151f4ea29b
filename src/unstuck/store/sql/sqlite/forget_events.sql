DELETE FROM unstuck_events WHERE job IN (SELECT value FROM json_each(:jobs))
