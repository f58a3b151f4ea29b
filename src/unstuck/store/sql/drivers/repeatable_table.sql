CREATE TABLE IF NOT EXISTS unstuck_repeatables (
    name       TEXT PRIMARY KEY,
    checksum   TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)
