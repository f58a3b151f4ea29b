SELECT * FROM unstuck_notifications WHERE id = :number
