DELETE FROM unstuck_done WHERE job = :job
