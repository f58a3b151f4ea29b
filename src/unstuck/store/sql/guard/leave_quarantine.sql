DELETE FROM unstuck_quarantine WHERE duty = :duty AND item = :item
