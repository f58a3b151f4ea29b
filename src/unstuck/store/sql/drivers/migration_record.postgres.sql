-- The server's own clock: unstuck_now() is itself made by a migration.
INSERT INTO unstuck_migrations (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT))
