SELECT * FROM unstuck_orders WHERE id = :number
