UPDATE unstuck_done SET n = n + 1 WHERE job = :job
