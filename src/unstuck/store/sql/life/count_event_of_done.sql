UPDATE unstuck_done SET event_count = event_count + 1 WHERE job = :job
