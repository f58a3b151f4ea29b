SELECT job FROM unstuck_running WHERE job = :job FOR UPDATE SKIP LOCKED
