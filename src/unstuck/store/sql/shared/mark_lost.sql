UPDATE unstuck_workers SET state = 'lost' WHERE id = :worker AND state = 'active'
