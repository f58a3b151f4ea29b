-- Of these keys those that nobody holds: now they are ours until the commit. A statement of its own: only what comes after it sees what
-- others did under these locks.
SELECT key FROM unnest(CAST(:keys AS BIGINT[])) AS k (key) WHERE pg_try_advisory_xact_lock(key)
