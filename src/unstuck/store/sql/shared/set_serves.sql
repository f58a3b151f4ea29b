UPDATE unstuck_workers SET serves = :serves WHERE id = :worker AND serves <> :serves
