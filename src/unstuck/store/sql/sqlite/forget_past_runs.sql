DELETE FROM unstuck_past_runs WHERE job IN (SELECT value FROM json_each(:jobs))
