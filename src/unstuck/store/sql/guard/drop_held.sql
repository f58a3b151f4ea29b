DELETE FROM unstuck_blacklist_held {matching :rows (entry BIGINT, job BIGINT)}
