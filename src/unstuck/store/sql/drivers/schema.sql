-- Which migrations, views and functions were applied.

-- name: migration_table
CREATE TABLE IF NOT EXISTS unstuck_migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)

-- name: migration_table_exists
SELECT {postgres to_regclass('unstuck_migrations') IS NOT NULL}
       {sqlite EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'unstuck_migrations')} AS found

-- name: migrations_applied
SELECT number, name, checksum, applied_at
  FROM unstuck_migrations
 ORDER BY number

-- name: migration_record
-- The server's own clock: unstuck_now() is itself made by a migration. SQLite's is our function, registered on every connection.
INSERT INTO unstuck_migrations (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum,
        {postgres CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)}{sqlite unstuck_now()})

-- name: schema_version
-- The first: by it a database is known whose migrations had other numbers, or another text.
SELECT COALESCE(MAX(number), 0) AS version,
       MAX(CASE WHEN number = 1 THEN name END) AS first_name,
       MAX(CASE WHEN number = 1 THEN checksum END) AS first_checksum
  FROM unstuck_migrations

-- name: repeatable_table
CREATE TABLE IF NOT EXISTS unstuck_repeatables (
    name       TEXT PRIMARY KEY,
    checksum   TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)

-- name: repeatables_applied
SELECT name, checksum FROM unstuck_repeatables

-- name: repeatable_record
INSERT INTO unstuck_repeatables (name, checksum, applied_at)
VALUES (:name, :checksum, unstuck_now())
ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at
