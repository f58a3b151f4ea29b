-- What the code says is not an operator's to lift; it can be replaced.
DELETE FROM unstuck_limits WHERE kind = :kind AND name = :name AND tenant = :tenant AND set_by <> :by
