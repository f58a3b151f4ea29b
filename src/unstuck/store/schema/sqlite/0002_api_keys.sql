-- Who may ask over HTTP. digest: SHA-256 of the whole key, which is nowhere. tenant NULL: the platform's. scopes, queues, workflows: lists (JSON); of the
-- last two NULL means all. rotated_from: the key whose place it took.
CREATE TABLE unstuck_api_keys (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    name         TEXT NOT NULL,
    digest       TEXT NOT NULL,
    tenant       TEXT,
    role         TEXT NOT NULL,
    scopes       TEXT NOT NULL DEFAULT '[]',
    queues       TEXT,
    workflows    TEXT,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    revoked_by   TEXT,
    rotated_from TEXT UNIQUE
);
CREATE INDEX unstuck_api_keys_tenant ON unstuck_api_keys (tenant, number);

-- What a browser is known by after somebody has shown a key there. digest: SHA-256 of what the browser keeps. It ends with its key, when it has not been used
-- until idle_until, and at ends_at.
CREATE TABLE unstuck_browser_sessions (
    digest     TEXT PRIMARY KEY,
    key        TEXT NOT NULL,
    csrf       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    idle_us    INTEGER NOT NULL,
    idle_until INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX unstuck_browser_sessions_key ON unstuck_browser_sessions (key);
CREATE INDEX unstuck_browser_sessions_idle ON unstuck_browser_sessions (idle_until);
