-- The same as on PostgreSQL.
-- Durable flow: finished steps, waits and what answers them, children, and what a job has used of its budget.

-- Recorded once under the fence; a resume keeps them, one from the start drops them. result is JSON.
CREATE TABLE unstuck_steps (
    job         INTEGER NOT NULL,
    name        TEXT NOT NULL,
    ordinal     INTEGER NOT NULL,
    run         INTEGER NOT NULL,
    token       INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    result      TEXT NOT NULL,
    PRIMARY KEY (job, name, ordinal)
) WITHOUT ROWID;

-- One row per wait of a run. address: whose letters answer it, 'job:UID' or 'topic:NAME'. answer: how it ended, NULL while it is open;
-- whoever writes it first, under this row's lock, has decided. spec and payload are JSON.
CREATE TABLE unstuck_waits (
    job         INTEGER NOT NULL,
    run         INTEGER NOT NULL,
    key         TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('event', 'approval', 'time', 'children')),
    name        TEXT NOT NULL,
    address     TEXT,
    spec        TEXT NOT NULL DEFAULT '{}',
    asked_at    INTEGER NOT NULL,
    until_at    INTEGER NOT NULL,
    answer      TEXT CHECK (answer IN ('event', 'approved', 'rejected', 'due', 'ended', 'default', 'timeout')),
    payload     TEXT,
    answered_at INTEGER,
    by          TEXT,
    comment     TEXT,
    PRIMARY KEY (job, run, key)
) WITHOUT ROWID;
CREATE INDEX unstuck_waits_address ON unstuck_waits (tenant, address, name, asked_at) WHERE answer IS NULL AND address IS NOT NULL;
CREATE INDEX unstuck_waits_open ON unstuck_waits (tenant, kind, asked_at, job) WHERE answer IS NULL;

-- Events that no wait has taken yet. run: of the job they were sent to; NULL on a topic.
CREATE TABLE unstuck_letters (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT NOT NULL,
    address    TEXT NOT NULL,
    event      TEXT NOT NULL,
    payload    TEXT NOT NULL,
    run        INTEGER,
    by         TEXT NOT NULL,
    sent_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX unstuck_letters_address ON unstuck_letters (tenant, address, event, id);
CREATE INDEX unstuck_letters_expires ON unstuck_letters (expires_at);

-- Who spawned whom. on_end: what a failed parent's end does to it. left_at: its parent ended so, and it is to be cancelled.
CREATE TABLE unstuck_children (
    child   INTEGER PRIMARY KEY,
    parent  INTEGER NOT NULL,
    run     INTEGER NOT NULL,
    name    TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    depth   INTEGER NOT NULL,
    on_end  TEXT NOT NULL CHECK (on_end IN ('cancel', 'leave')),
    left_at INTEGER
);
CREATE UNIQUE INDEX unstuck_children_parent ON unstuck_children (parent, name, ordinal);
CREATE INDEX unstuck_children_left ON unstuck_children (left_at, child) WHERE left_at IS NOT NULL;

-- token, serial: the last spending that was counted, so that a repeated one is not.
CREATE TABLE unstuck_usage (
    job    INTEGER NOT NULL,
    run    INTEGER NOT NULL,
    unit   TEXT NOT NULL,
    used   REAL NOT NULL,
    token  INTEGER NOT NULL,
    serial INTEGER NOT NULL,
    PRIMARY KEY (job, run, unit)
) WITHOUT ROWID;

-- The deadline of a wait is a timer as well. A CHECK can only be changed by a new table.
CREATE TABLE unstuck_timers_anew (
    due_at INTEGER NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('start', 'expire', 'wait')),
    job    INTEGER NOT NULL,
    route  INTEGER,
    PRIMARY KEY (kind, due_at, job)
) WITHOUT ROWID;
INSERT INTO unstuck_timers_anew (due_at, kind, job, route) SELECT due_at, kind, job, route FROM unstuck_timers;
DROP TABLE unstuck_timers;
ALTER TABLE unstuck_timers_anew RENAME TO unstuck_timers;
CREATE INDEX unstuck_timers_route ON unstuck_timers (route, job) WHERE kind = 'start';

-- The job whose call this one repeats.
ALTER TABLE unstuck_jobs ADD COLUMN replay_of TEXT;
