-- Locked if that needs no waiting. No row: there is none that could be held.
SELECT (SELECT 1 FROM (SELECT 1 FROM unstuck_limits WHERE kind = 'workflow' AND name = :name AND tenant = '*' {lock FOR UPDATE SKIP LOCKED}) AS free) IS NOT NULL AS is_free
  FROM unstuck_limits
 WHERE kind = 'workflow' AND name = :name AND tenant = '*'
