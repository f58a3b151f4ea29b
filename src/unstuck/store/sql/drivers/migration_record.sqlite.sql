-- SQLite's clock is our own function, registered on every connection.
INSERT INTO unstuck_migrations (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum, unstuck_now())
