DELETE FROM unstuck_limits WHERE kind = :kind AND name = :name AND tenant = :tenant
