SELECT * FROM unstuck_orders WHERE worker = :worker AND done_at IS NULL ORDER BY id
