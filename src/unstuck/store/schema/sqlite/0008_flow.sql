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

-- One row per wait of a run. address: whose letters answer it, 'job:UID' or 'topic:NAME'. token: of the attempt that parked; it
-- orders the waits of a job, which times do not when a clock is set back. answer: how it ended, NULL while it is open; whoever
-- writes it first, under this row's lock, has decided. spec and payload are JSON.
CREATE TABLE unstuck_waits (
    job         INTEGER NOT NULL,
    run         INTEGER NOT NULL,
    key         TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('event', 'approval', 'time', 'children')),
    name        TEXT NOT NULL,
    address     TEXT,
    spec        TEXT NOT NULL DEFAULT '{}',
    token       INTEGER NOT NULL,
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

-- The deadline of a wait is a timer as well. A CHECK can only be changed by a new table; not by renaming one, for which SQLite
-- reads every view, and the views call a function that only our driver knows.
CREATE TABLE unstuck_timers_kept AS SELECT due_at, kind, job, route FROM unstuck_timers;
DROP TABLE unstuck_timers;
CREATE TABLE unstuck_timers (
    due_at INTEGER NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('start', 'expire', 'wait')),
    job    INTEGER NOT NULL,
    route  INTEGER,
    PRIMARY KEY (kind, due_at, job)
) WITHOUT ROWID;
INSERT INTO unstuck_timers (due_at, kind, job, route) SELECT due_at, kind, job, route FROM unstuck_timers_kept;
DROP TABLE unstuck_timers_kept;
CREATE INDEX unstuck_timers_route ON unstuck_timers (route, job) WHERE kind = 'start';

-- The job whose call this one repeats.
ALTER TABLE unstuck_jobs ADD COLUMN replay_of TEXT;
DROP VIEW unstuck_job_rows;
CREATE VIEW unstuck_job_rows AS
SELECT j.id AS number, j.uid, j.tenant, j.queue, j.workflow, j.route, t.name AS target, j.target AS target_number, j.priority, j.rank,
       CASE WHEN r.job IS NOT NULL THEN 'RUNNING' ELSE COALESCE(d.state, j.state) END AS state,
       COALESCE(r.run, d.run, j.run) AS run,
       COALESCE(r.token, d.token, j.token) AS token,
       COALESCE(r.n, d.n, j.n) AS n,
       j.payload, j.policy, j.created_at, j.available_at, j.expires_at, j.started, j.on_hold, j.after_failure,
       j.failures, j.losses, j.suspects, j.alone, j.key, j.tags, (SELECT o.limit_key FROM unstuck_routes o WHERE o.id = j.route) AS limit_key,
       r.request, r.requested_at, r.request_reason, r.claim, w.name AS worker, r.claimed_at, r.started_at,
       w.beat_at AS heartbeat_at, w.lease_until,
       d.finished_at, d.duration_ms, d.result, COALESCE(d.late, 0) AS late,
       CASE WHEN d.job IS NULL THEN j.error_type ELSE d.error_type END AS error_type,
       CASE WHEN d.job IS NULL THEN j.error_message ELSE d.error_message END AS error_message,
       CASE WHEN h.job IS NULL THEN 0 ELSE 1 END AS held,
       CASE WHEN t.head = j.id THEN 1 ELSE 0 END AS is_head,
       CASE WHEN t.blocked_by = j.id THEN 1 ELSE 0 END AS is_blocker,
       CASE WHEN t.blocked_by <> j.id THEN 1 ELSE 0 END AS is_blocked,
       j.replay_of
  FROM unstuck_jobs j
  LEFT JOIN unstuck_running r ON r.job = j.id
  LEFT JOIN unstuck_workers w ON w.id = r.worker
  LEFT JOIN unstuck_done d ON d.job = j.id
  LEFT JOIN unstuck_holds h ON h.job = j.id
  LEFT JOIN unstuck_targets t ON t.id = j.target;
