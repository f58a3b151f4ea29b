DELETE FROM unstuck_steps WHERE job = :job
