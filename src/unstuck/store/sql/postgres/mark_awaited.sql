UPDATE unstuck_running SET awaited = 1 WHERE job = ANY (CAST(:jobs AS BIGINT[])) AND awaited = 0
