DELETE FROM unstuck_settings WHERE name = :name
