-- The server's own clock: unstuck_now() is itself made by a migration. SQLite's is our function, registered on every connection.
INSERT INTO unstuck_migrations (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum,
        {postgres CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)}{sqlite unstuck_now()})
