SELECT id FROM unstuck_targets WHERE tenant = :tenant AND name = :name
