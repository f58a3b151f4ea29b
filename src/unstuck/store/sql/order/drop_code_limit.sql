DELETE FROM unstuck_limits WHERE kind = 'workflow' AND name = :name AND tenant = '*' AND set_by = :by
