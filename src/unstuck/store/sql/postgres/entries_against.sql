SELECT * FROM unstuck_blacklist WHERE removed_at IS NULL AND workflow = ANY (CAST(:workflows AS TEXT[])) ORDER BY id
