SELECT id FROM notes WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id
