SELECT job FROM unstuck_blacklist_held WHERE entry = :entry ORDER BY job LIMIT 1
