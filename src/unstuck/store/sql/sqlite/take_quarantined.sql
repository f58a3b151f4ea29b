DELETE FROM unstuck_quarantine WHERE duty = :duty AND item IN (SELECT value FROM json_each(:items)) RETURNING item
