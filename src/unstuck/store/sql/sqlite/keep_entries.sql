SELECT * FROM unstuck_blacklist WHERE id IN (SELECT value FROM json_each(:entries)) AND removed_at IS NULL ORDER BY id
