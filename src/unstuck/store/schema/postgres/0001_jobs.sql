-- The life phases of a job: jobs (wide, written at submit and on rare paths) -> ready -> running -> done.
-- Instants are microseconds since the epoch, by unstuck_now(), the one clock of every statement.

CREATE FUNCTION unstuck_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)
$$;

CREATE TABLE unstuck_routes (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant   TEXT NOT NULL,
    queue    TEXT NOT NULL,
    workflow TEXT NOT NULL,
    UNIQUE (tenant, queue, workflow)
);

-- timeout_us and grace_us repeat what the body says, for the backstop's arithmetic; NULL is "unlimited".
CREATE TABLE unstuck_policies (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest     TEXT NOT NULL UNIQUE,
    body       TEXT NOT NULL,
    timeout_us BIGINT,
    grace_us   BIGINT NOT NULL
);

CREATE TABLE unstuck_targets (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    head       BIGINT,
    low_rank   BIGINT,
    low_job    BIGINT,
    blocked_by BIGINT,
    blocked_at BIGINT,
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);

-- "This target got a new job": insert-only, so that a submit never waits for a target's lock.
CREATE TABLE unstuck_inbox (
    seq    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target BIGINT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- token, n and the counts are as at the job's last rest; while it is in running or done, those rows hold the current ones.
CREATE TABLE unstuck_jobs (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid           TEXT COLLATE "C" NOT NULL UNIQUE,
    tenant        TEXT NOT NULL,
    queue         TEXT NOT NULL,
    workflow      TEXT NOT NULL,
    route         BIGINT NOT NULL,
    target        BIGINT,
    priority      INTEGER NOT NULL,
    rank          BIGINT NOT NULL,
    payload       TEXT NOT NULL,
    policy        BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    available_at  BIGINT NOT NULL,
    expires_at    BIGINT,
    state         TEXT NOT NULL DEFAULT 'QUEUED' CHECK (state IN ('PENDING', 'QUEUED', 'WAITING', 'PAUSED')),
    run           BIGINT NOT NULL DEFAULT 1,
    token         BIGINT NOT NULL DEFAULT 0,
    n             BIGINT NOT NULL DEFAULT 1,
    failures      INTEGER NOT NULL DEFAULT 0,
    losses        INTEGER NOT NULL DEFAULT 0,
    suspects      INTEGER NOT NULL DEFAULT 0,
    alone         SMALLINT NOT NULL DEFAULT 0,
    key           TEXT,
    tags          TEXT,
    error_type    TEXT,
    error_message TEXT
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX unstuck_jobs_tenant ON unstuck_jobs (tenant, id);
CREATE INDEX unstuck_jobs_resting ON unstuck_jobs (state, id) WHERE state <> 'QUEUED';
CREATE INDEX unstuck_jobs_target ON unstuck_jobs (target, rank, id) WHERE target IS NOT NULL;

-- What may be claimed now, and nothing else. The row is also the lock on a waiting job: whoever deletes it owns the move.
CREATE TABLE unstuck_ready (
    route BIGINT NOT NULL,
    rank  BIGINT NOT NULL,
    job   BIGINT NOT NULL,
    PRIMARY KEY (route, rank, job)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_insert_scale_factor = 0.1);

-- The open attempts. overdue_at is when the handler should have stopped at the latest, its grace included.
CREATE TABLE unstuck_running (
    job            BIGINT PRIMARY KEY,
    token          BIGINT NOT NULL,
    claim          TEXT COLLATE "C" NOT NULL,
    worker         BIGINT NOT NULL,
    route          BIGINT NOT NULL,
    policy         BIGINT NOT NULL,
    target         BIGINT,
    run            BIGINT NOT NULL,
    n              BIGINT NOT NULL,
    claimed_at     BIGINT NOT NULL,
    started_at     BIGINT,
    overdue_at     BIGINT,
    request        TEXT CHECK (request IN ('cancel', 'budget', 'interrupt', 'timeout', 'drain')),
    requested_at   BIGINT,
    request_reason TEXT,
    request_by     TEXT
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX unstuck_running_worker ON unstuck_running (worker, claim);
CREATE UNIQUE INDEX unstuck_running_target ON unstuck_running (target) WHERE target IS NOT NULL;

CREATE TABLE unstuck_done (
    job           BIGINT PRIMARY KEY,
    route         BIGINT NOT NULL,
    run           BIGINT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('COMPLETED', 'FAILED', 'TIMEOUT', 'CANCELLED', 'DEAD')),
    token         BIGINT NOT NULL,
    n             BIGINT NOT NULL,
    worker        BIGINT,
    claimed_at    BIGINT,
    finished_at   BIGINT NOT NULL,
    duration_ms   BIGINT,
    result        TEXT,
    error_type    TEXT,
    error_message TEXT,
    late          SMALLINT NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX unstuck_done_finished ON unstuck_done (finished_at, job);
CREATE INDEX unstuck_done_troubled ON unstuck_done (state, job) WHERE state <> 'COMPLETED';

-- Ends of earlier runs: a resume or resolve moves the done row here, unchanged.
CREATE TABLE unstuck_past_runs (
    job           BIGINT NOT NULL,
    route         BIGINT NOT NULL,
    run           BIGINT NOT NULL,
    state         TEXT NOT NULL,
    token         BIGINT NOT NULL,
    n             BIGINT NOT NULL,
    worker        BIGINT,
    claimed_at    BIGINT,
    finished_at   BIGINT NOT NULL,
    duration_ms   BIGINT,
    result        TEXT,
    error_type    TEXT,
    error_message TEXT,
    late          SMALLINT NOT NULL DEFAULT 0,
    PRIMARY KEY (job, run)
);

CREATE TABLE unstuck_timers (
    due_at BIGINT NOT NULL,
    kind   TEXT NOT NULL CHECK (kind IN ('start', 'expire')),
    job    BIGINT NOT NULL,
    PRIMARY KEY (kind, due_at, job)
) WITH (autovacuum_vacuum_scale_factor = 0.01);

CREATE TABLE unstuck_workers (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    incarnation   TEXT NOT NULL UNIQUE,
    name          TEXT NOT NULL,
    host          TEXT NOT NULL,
    boot_id       TEXT NOT NULL,
    pid_namespace TEXT NOT NULL,
    pid           BIGINT NOT NULL,
    pid_start     BIGINT NOT NULL,
    queues        TEXT NOT NULL,
    code_version  TEXT NOT NULL,
    state         TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'draining', 'fenced', 'lost', 'gone')),
    started_at    BIGINT NOT NULL,
    beat_at       BIGINT NOT NULL,
    lease_until   BIGINT NOT NULL,
    reason        TEXT,
    info          TEXT NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE unstuck_workflows (
    name          TEXT NOT NULL,
    code_version  TEXT NOT NULL,
    queue         TEXT NOT NULL,
    policy        TEXT NOT NULL,
    schema        TEXT NOT NULL,
    target        TEXT,
    doc           TEXT,
    registered_at BIGINT NOT NULL,
    seen_at       BIGINT NOT NULL,
    PRIMARY KEY (name, code_version)
);

-- A job that must not start because an old body of it may still live.
CREATE TABLE unstuck_holds (
    job      BIGINT PRIMARY KEY,
    target   BIGINT,
    worker   BIGINT NOT NULL,
    pid      BIGINT,
    since_at BIGINT NOT NULL,
    reason   TEXT NOT NULL
);
CREATE INDEX unstuck_holds_target ON unstuck_holds (target) WHERE target IS NOT NULL;

CREATE TABLE unstuck_keys (
    tenant      TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    job         TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX unstuck_keys_created ON unstuck_keys (created_at);

-- xid first and by default: the global order of the feed is built from it, and nothing may forget to fill it.
CREATE TABLE unstuck_events (
    xid   XID8 NOT NULL DEFAULT pg_current_xact_id(),
    id    BIGINT GENERATED ALWAYS AS IDENTITY (CACHE 1),
    job   BIGINT NOT NULL,
    n     BIGINT NOT NULL,
    at    BIGINT NOT NULL,
    run   BIGINT NOT NULL,
    token BIGINT NOT NULL,
    kind  TEXT NOT NULL,
    data  TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (job, n)
) WITH (autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE unstuck_outputs (
    job    BIGINT NOT NULL,
    token  BIGINT NOT NULL,
    output TEXT,
    stack  TEXT,
    PRIMARY KEY (job, token)
);

CREATE TABLE unstuck_progress (
    job   BIGINT PRIMARY KEY,
    token BIGINT NOT NULL,
    value TEXT NOT NULL,
    at    BIGINT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE unstuck_idle (
    listener TEXT PRIMARY KEY,
    until    BIGINT NOT NULL
) WITH (fillfactor = 50);

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
