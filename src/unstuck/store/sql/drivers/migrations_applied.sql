SELECT number, name, checksum, applied_at
  FROM unstuck_migrations
 ORDER BY number
