DELETE FROM unstuck_ready WHERE route = :route AND rank = :rank AND job = :job
