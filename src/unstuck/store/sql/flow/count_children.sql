-- No further than :most; those whose place another has taken do not count.
SELECT COUNT(*) AS children
  FROM (SELECT 1 FROM unstuck_children WHERE parent = :parent AND ordinal > 0 LIMIT :most) AS counted
