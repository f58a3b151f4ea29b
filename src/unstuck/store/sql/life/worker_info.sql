SELECT info FROM unstuck_workers WHERE id = :worker
