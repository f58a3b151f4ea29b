SELECT name, value, number, run, token, at
  FROM unstuck_parts
 WHERE job = :job AND number > :after AND name <> ''
 ORDER BY number
 LIMIT :most
