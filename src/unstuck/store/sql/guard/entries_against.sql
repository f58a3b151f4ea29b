SELECT * FROM unstuck_blacklist WHERE removed_at IS NULL AND workflow {in :workflows TEXT} ORDER BY id
