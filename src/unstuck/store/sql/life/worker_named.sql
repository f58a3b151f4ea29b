SELECT name, host, code_version FROM unstuck_workers WHERE id = :worker
