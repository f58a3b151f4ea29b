UPDATE unstuck_jobs SET on_hold = 0 WHERE id IN (SELECT value FROM json_each(:jobs))
