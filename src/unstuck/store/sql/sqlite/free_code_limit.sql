-- There is one writer: nothing to lock.
SELECT 1 AS is_free FROM unstuck_limits WHERE kind = 'workflow' AND name = :name AND tenant = '*'
