UPDATE unstuck_jobs SET losses = 0 WHERE id = ANY (CAST(:jobs AS BIGINT[])) AND losses > 0
