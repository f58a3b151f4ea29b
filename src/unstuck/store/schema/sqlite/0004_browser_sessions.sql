-- A session has a number by which people can name it, and the address from which it was begun. What proves that a change comes from its own page is computed from
-- what the browser keeps: it is stored nowhere. Whoever has a session logs in anew.
DROP TABLE unstuck_browser_sessions;
CREATE TABLE unstuck_browser_sessions (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    digest     TEXT NOT NULL UNIQUE,
    key        TEXT NOT NULL,
    address    TEXT,
    created_at INTEGER NOT NULL,
    idle_us    INTEGER NOT NULL,
    idle_until INTEGER NOT NULL,
    ends_at    INTEGER NOT NULL
);
CREATE INDEX unstuck_browser_sessions_key ON unstuck_browser_sessions (key, number);
CREATE INDEX unstuck_browser_sessions_idle ON unstuck_browser_sessions (idle_until);

-- The id of the API key by which it was asked, and the address from which. NULL: by somebody who has the database itself.
ALTER TABLE unstuck_audit ADD COLUMN key TEXT;
ALTER TABLE unstuck_audit ADD COLUMN address TEXT;
