SELECT * FROM unstuck_blacklist
 WHERE removed_at IS NULL AND workflow IN (SELECT value FROM json_each(:workflows))
 ORDER BY id
