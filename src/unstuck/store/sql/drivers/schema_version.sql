SELECT COALESCE(MAX(number), 0) AS version
  FROM unstuck_migrations
