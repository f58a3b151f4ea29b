UPDATE unstuck_jobs SET losses = 0 WHERE id IN (SELECT value FROM json_each(:jobs)) AND losses > 0
