-- The same tables as on PostgreSQL. AUTOINCREMENT: a number is never used twice, or an old token could fit a new job.
-- The life phases of a job: jobs (wide, written at submit and on rare paths) -> ready -> running -> done.
-- Instants are microseconds since the epoch, by unstuck_now(), which the driver registers.

CREATE TABLE unstuck_routes (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT NOT NULL,
    queue    TEXT NOT NULL,
    workflow TEXT NOT NULL,
    UNIQUE (tenant, queue, workflow)
);

-- timeout_us and grace_us repeat what the body says, for the backstop's arithmetic; NULL is "unlimited".
CREATE TABLE unstuck_policies (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    digest     TEXT NOT NULL UNIQUE,
    body       TEXT NOT NULL,
    timeout_us INTEGER,
    grace_us   INTEGER NOT NULL
);

CREATE TABLE unstuck_targets (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    head       INTEGER,
    low_rank   INTEGER,
    low_job    INTEGER,
    blocked_by INTEGER,
    blocked_at INTEGER,
    UNIQUE (tenant, name)
);

-- "This target got a new job": insert-only, so that a submit never waits for a target's lock.
CREATE TABLE unstuck_inbox (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    target INTEGER NOT NULL
);

-- token, n and the counts are as at the job's last rest; while it is in running or done, those rows hold the current ones.
CREATE TABLE unstuck_jobs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    uid           TEXT NOT NULL UNIQUE,
    tenant        TEXT NOT NULL,
    queue         TEXT NOT NULL,
    workflow      TEXT NOT NULL,
    route         INTEGER NOT NULL,
    target        INTEGER,
    priority      INTEGER NOT NULL,
    rank          INTEGER NOT NULL,
    payload       TEXT NOT NULL,
    policy        INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    available_at  INTEGER NOT NULL,
    expires_at    INTEGER,
    state         TEXT NOT NULL DEFAULT 'QUEUED' CHECK (state IN ('PENDING', 'QUEUED', 'WAITING', 'PAUSED')),
    run           INTEGER NOT NULL DEFAULT 1,
    token         INTEGER NOT NULL DEFAULT 0,
    n             INTEGER NOT NULL DEFAULT 1,
    failures      INTEGER NOT NULL DEFAULT 0,
    losses        INTEGER NOT NULL DEFAULT 0,
    suspects      INTEGER NOT NULL DEFAULT 0,
    alone         INTEGER NOT NULL DEFAULT 0,
    key           TEXT,
    tags          TEXT,
    error_type    TEXT,
    error_message TEXT
);
CREATE INDEX unstuck_jobs_tenant ON unstuck_jobs (tenant, id);
CREATE INDEX unstuck_jobs_resting ON unstuck_jobs (state, id) WHERE state <> 'QUEUED';
CREATE INDEX unstuck_jobs_target ON unstuck_jobs (target, rank, id) WHERE target IS NOT NULL;

-- What may be claimed now, and nothing else. The row is also the lock on a waiting job: whoever deletes it owns the move.
CREATE TABLE unstuck_ready (
    route INTEGER NOT NULL,
    rank  INTEGER NOT NULL,
    job   INTEGER NOT NULL,
    PRIMARY KEY (route, rank, job)
) WITHOUT ROWID;

-- The open attempts. overdue_at is when the handler should have stopped at the latest, its grace included.
CREATE TABLE unstuck_running (
    job            INTEGER PRIMARY KEY,
    token          INTEGER NOT NULL,
    claim          TEXT NOT NULL,
    worker         INTEGER NOT NULL,
    route          INTEGER NOT NULL,
    policy         INTEGER NOT NULL,
    target         INTEGER,
    run            INTEGER NOT NULL,
    n              INTEGER NOT NULL,
    claimed_at     INTEGER NOT NULL,
    started_at     INTEGER,
    overdue_at     INTEGER,
    request        TEXT CHECK (request IN ('cancel', 'budget', 'interrupt', 'timeout', 'drain')),
    requested_at   INTEGER,
    request_reason TEXT,
    request_by     TEXT
);
CREATE INDEX unstuck_running_worker ON unstuck_running (worker, claim);
CREATE UNIQUE INDEX unstuck_running_target ON unstuck_running (target) WHERE target IS NOT NULL;

CREATE TABLE unstuck_done (
    job           INTEGER PRIMARY KEY,
    route         INTEGER NOT NULL,
    run           INTEGER NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('COMPLETED', 'FAILED', 'TIMEOUT', 'CANCELLED', 'DEAD')),
    token         INTEGER NOT NULL,
    n             INTEGER NOT NULL,
    worker        INTEGER,
    claimed_at    INTEGER,
    finished_at   INTEGER NOT NULL,
    duration_ms   INTEGER,
    result        TEXT,
    error_type    TEXT,
    error_message TEXT,
    late          INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX unstuck_done_finished ON unstuck_done (finished_at, job);
CREATE INDEX unstuck_done_troubled ON unstuck_done (state, job) WHERE state <> 'COMPLETED';

-- Ends of earlier runs: a resume or resolve moves the done row here, unchanged.
CREATE TABLE unstuck_past_runs (
    job           INTEGER NOT NULL,
    route         INTEGER NOT NULL,
    run           INTEGER NOT NULL,
    state         TEXT NOT NULL,
    token         INTEGER NOT NULL,
    n             INTEGER NOT NULL,
    worker        INTEGER,
    claimed_at    INTEGER,
    finished_at   INTEGER NOT NULL,
    duration_ms   INTEGER,
    result        TEXT,
    error_type    TEXT,
    error_message TEXT,
    late          INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, run)
) WITHOUT ROWID;

CREATE TABLE unstuck_timers (
    due_at INTEGER NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('start', 'expire')),
    job    INTEGER NOT NULL,
    PRIMARY KEY (kind, due_at, job)
) WITHOUT ROWID;

CREATE TABLE unstuck_workers (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    incarnation   TEXT NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    host          TEXT NOT NULL,
    boot_id       TEXT NOT NULL,
    pid_namespace TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    pid_start     INTEGER NOT NULL,
    queues        TEXT NOT NULL,
    code_version  TEXT NOT NULL,
    state         TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'draining', 'fenced', 'lost', 'gone')),
    started_at    INTEGER NOT NULL,
    beat_at       INTEGER NOT NULL,
    lease_until   INTEGER NOT NULL,
    reason        TEXT,
    info          TEXT NOT NULL DEFAULT '{}'
);

CREATE TABLE unstuck_workflows (
    name          TEXT NOT NULL,
    code_version  TEXT NOT NULL,
    queue         TEXT NOT NULL,
    policy        TEXT NOT NULL,
    schema        TEXT NOT NULL,
    target        TEXT,
    doc           TEXT,
    registered_at INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    PRIMARY KEY (name, code_version)
);

-- A job that must not start because an old body of it may still live.
CREATE TABLE unstuck_holds (
    job      INTEGER PRIMARY KEY,
    target   INTEGER,
    worker   INTEGER NOT NULL,
    pid      INTEGER,
    since_at INTEGER NOT NULL,
    reason   TEXT NOT NULL
);
CREATE INDEX unstuck_holds_target ON unstuck_holds (target) WHERE target IS NOT NULL;

CREATE TABLE unstuck_keys (
    tenant      TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    job         TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX unstuck_keys_created ON unstuck_keys (created_at);

-- One writer at a time: here the id alone is the order of commits.
CREATE TABLE unstuck_events (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    job   INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    run   INTEGER NOT NULL,
    token INTEGER NOT NULL,
    kind  TEXT NOT NULL,
    data  TEXT NOT NULL DEFAULT '{}',
    UNIQUE (job, n)
);

CREATE TABLE unstuck_outputs (
    job    INTEGER NOT NULL,
    token  INTEGER NOT NULL,
    output TEXT,
    stack  TEXT,
    PRIMARY KEY (job, token)
) WITHOUT ROWID;

CREATE TABLE unstuck_progress (
    job   INTEGER PRIMARY KEY,
    token INTEGER NOT NULL,
    value TEXT NOT NULL,
    at    INTEGER NOT NULL
);

CREATE TABLE unstuck_idle (
    listener TEXT PRIMARY KEY,
    until    INTEGER NOT NULL
) WITHOUT ROWID;

-- A job as it stands. The state is derived, so that RUNNING without an open attempt cannot be represented.
CREATE VIEW unstuck_job_rows AS
SELECT j.id AS number, j.uid, j.tenant, j.queue, j.workflow, j.route, t.name AS target, j.priority, j.rank,
       CASE WHEN r.job IS NOT NULL THEN 'RUNNING' ELSE COALESCE(d.state, j.state) END AS state,
       COALESCE(r.run, d.run, j.run) AS run,
       COALESCE(r.token, d.token, j.token) AS token,
       COALESCE(r.n, d.n, j.n) AS n,
       j.payload, j.policy, j.created_at, j.available_at, j.expires_at,
       j.failures, j.losses, j.suspects, j.alone, j.key, j.tags,
       r.request, r.requested_at, r.request_reason, r.claim, w.name AS worker, r.claimed_at, r.started_at,
       w.beat_at AS heartbeat_at, w.lease_until,
       d.finished_at, d.duration_ms, d.result, COALESCE(d.late, 0) AS late,
       CASE WHEN d.job IS NULL THEN j.error_type ELSE d.error_type END AS error_type,
       CASE WHEN d.job IS NULL THEN j.error_message ELSE d.error_message END AS error_message,
       CASE WHEN h.job IS NULL THEN 0 ELSE 1 END AS held
  FROM unstuck_jobs j
  LEFT JOIN unstuck_running r ON r.job = j.id
  LEFT JOIN unstuck_workers w ON w.id = r.worker
  LEFT JOIN unstuck_done d ON d.job = j.id
  LEFT JOIN unstuck_holds h ON h.job = j.id
  LEFT JOIN unstuck_targets t ON t.id = j.target;
