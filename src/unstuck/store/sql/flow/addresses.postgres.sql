-- The addresses of events, locked.

-- name: lock_addresses
-- One after the other in the order given, sorted by who asks: two that need the same addresses never wait in a circle.
-- A statement of its own: only what comes after it sees what others did under these locks.
SELECT pg_advisory_xact_lock(key) FROM unnest(CAST(:keys AS BIGINT[])) AS k (key)

-- name: try_addresses
-- Of these keys those that nobody holds: now they are ours until the commit. A statement of its own: only what comes after it sees what
-- others did under these locks.
SELECT key FROM unnest(CAST(:keys AS BIGINT[])) AS k (key) WHERE pg_try_advisory_xact_lock(key)
