-- The tables, their indexes and first rows. What is computed (views, functions) is in repeatable/.
-- Instants are microseconds since the epoch, by unstuck_now(), the one clock of every statement.

-- The engine's time does not leap with the database's clock: it is that clock and what it is `ahead` of it, and whoever notices a leap takes it back
-- there. Distances (leases, delays, limits) live in the engine's time and need nothing; an appointment is an instant of the clock, and moves.
-- `ahead` is a constant inside a function: inlined into every statement it costs nothing, and who replaces it replaces it for all sessions at once.
CREATE FUNCTION unstuck_wall() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)
$$;

CREATE FUNCTION unstuck_ahead() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT CAST(0 AS BIGINT)
$$;

CREATE FUNCTION unstuck_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT unstuck_wall() + unstuck_ahead()
$$;

CREATE TABLE unstuck_routes (
    id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant    TEXT NOT NULL,
    queue     TEXT NOT NULL,
    workflow  TEXT NOT NULL,
    -- A job's route is also its limit key: what may not run for its key's sake waits on a route of its own and is scanned by nobody.
    limit_key TEXT NOT NULL DEFAULT '',
    -- When a route or target was last meant by somebody who submits, to the day. What nobody has meant for long, and no job names, goes.
    named_at  BIGINT NOT NULL DEFAULT unstuck_now()
);
CREATE UNIQUE INDEX unstuck_routes_name ON unstuck_routes (tenant, queue, workflow, limit_key);
-- From an entry to the routes it shuts.
CREATE INDEX unstuck_routes_workflow ON unstuck_routes (workflow, tenant, id);
CREATE INDEX unstuck_routes_named ON unstuck_routes (named_at, id);

-- timeout_us and grace_us repeat what the body says, for the backstop's arithmetic; NULL is "unlimited".
CREATE TABLE unstuck_policies (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest     TEXT NOT NULL UNIQUE,
    body       TEXT NOT NULL,
    timeout_us BIGINT,
    grace_us   BIGINT NOT NULL,
    -- Of jobs whose workflow nobody had registered yet: what they said. The first registration fills in the rest.
    workflow   TEXT,
    said       TEXT
);
CREATE INDEX unstuck_policies_open ON unstuck_policies (workflow) WHERE workflow IS NOT NULL;

CREATE TABLE unstuck_targets (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    head       BIGINT,
    blocked_by BIGINT,
    blocked_at BIGINT,
    head_place BIGINT,
    named_at   BIGINT NOT NULL DEFAULT unstuck_now(),
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);
CREATE INDEX unstuck_targets_blocked ON unstuck_targets (tenant, blocked_at, id) WHERE blocked_by IS NOT NULL;
CREATE INDEX unstuck_targets_named ON unstuck_targets (named_at, id);

-- "This target got a new job": insert-only, so that a submit never waits for a target's lock.
CREATE TABLE unstuck_inbox (
    seq    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target BIGINT,
    job    BIGINT,
    -- Since when an entry stands there: one that nobody works off must be noticed. By default, so that nobody who writes one can forget it.
    at     BIGINT NOT NULL DEFAULT unstuck_now()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- token, event_count and the counts are as at the job's last rest; while it is in running or done, those rows hold the current ones.
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
    event_count   BIGINT NOT NULL DEFAULT 1,
    failures      INTEGER NOT NULL DEFAULT 0,
    losses        INTEGER NOT NULL DEFAULT 0,
    suspects      INTEGER NOT NULL DEFAULT 0,
    alone         SMALLINT NOT NULL DEFAULT 0,
    key           TEXT,
    tags          TEXT,
    error_type    TEXT,
    error_message TEXT,
    -- started: a handler of it has begun, so half of its work may be done. on_hold: a person must release it.
    started       SMALLINT NOT NULL DEFAULT 0,
    on_hold       SMALLINT NOT NULL DEFAULT 0,
    after_failure TEXT CHECK (after_failure IN ('fail', 'run')),
    -- The job whose call this one repeats.
    replay_of     TEXT COLLATE "C",
    -- The instant of the clock that was asked for; NULL: a distance. A PENDING job goes by it when it is released.
    appointed     BIGINT
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX unstuck_jobs_tenant ON unstuck_jobs (tenant, id);
CREATE INDEX unstuck_jobs_target ON unstuck_jobs (target, id) WHERE target IS NOT NULL;
CREATE INDEX unstuck_jobs_resting ON unstuck_jobs (tenant, state, id) WHERE state <> 'QUEUED';
CREATE INDEX unstuck_jobs_route ON unstuck_jobs (route, id);
CREATE INDEX unstuck_jobs_error ON unstuck_jobs (error_type, id) WHERE error_type IS NOT NULL;

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
    event_count    BIGINT NOT NULL,
    claimed_at     BIGINT NOT NULL,
    started_at     BIGINT,
    overdue_at     BIGINT,
    request        TEXT CHECK (request IN ('cancel', 'budget', 'interrupt', 'timeout', 'drain')),
    requested_at   BIGINT,
    request_reason TEXT,
    request_by     TEXT,
    -- A PENDING job was told to go on waiting while this attempt was open: it must not close by the statement that looks for
    -- dependants and locks at once, because that one may have looked too early.
    awaited        SMALLINT NOT NULL DEFAULT 0
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX unstuck_running_worker ON unstuck_running (worker, claim);
CREATE UNIQUE INDEX unstuck_running_target ON unstuck_running (target) WHERE target IS NOT NULL;
CREATE INDEX unstuck_running_route ON unstuck_running (route);

CREATE TABLE unstuck_done (
    job           BIGINT PRIMARY KEY,
    route         BIGINT NOT NULL,
    run           BIGINT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('COMPLETED', 'FAILED', 'TIMEOUT', 'CANCELLED', 'DEAD')),
    token         BIGINT NOT NULL,
    event_count   BIGINT NOT NULL,
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
CREATE INDEX unstuck_done_route ON unstuck_done (route, state);
CREATE INDEX unstuck_done_error ON unstuck_done (error_type, job) WHERE error_type IS NOT NULL;

-- Ends of earlier runs: a resume or resolve moves the done row here, unchanged.
CREATE TABLE unstuck_past_runs (
    job           BIGINT NOT NULL,
    route         BIGINT NOT NULL,
    run           BIGINT NOT NULL,
    state         TEXT NOT NULL,
    token         BIGINT NOT NULL,
    event_count   BIGINT NOT NULL,
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
CREATE INDEX unstuck_past_runs_finished ON unstuck_past_runs (finished_at);

CREATE TABLE unstuck_timers (
    due_at    BIGINT NOT NULL,
    kind      TEXT NOT NULL CHECK (kind IN ('start', 'expire', 'wait')),
    job       BIGINT NOT NULL,
    route     BIGINT,
    -- The instant of the clock that was asked for; NULL: a distance.
    appointed BIGINT,
    PRIMARY KEY (kind, due_at, job)
) WITH (autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX unstuck_timers_route ON unstuck_timers (route, job) WHERE kind = 'start';
CREATE INDEX unstuck_timers_appointed ON unstuck_timers (job, kind) WHERE appointed IS NOT NULL;

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
    info          TEXT NOT NULL DEFAULT '{}',
    -- {"queues": [...], "workflows": [...]}, as the worker claims by it; empty until its app is imported.
    serves        TEXT NOT NULL DEFAULT '{}',
    -- When a worker left, or was seen to be lost. Its row is kept for a while, and a crash loop leaves thousands: who asks for those that
    -- live must not read the others. lease_until is in no index, so that a beat stays within its page.
    ended_at      BIGINT,
    -- When the worker beat last, by BOOTTIME of its machine: who starts there later finds out what the clock did meanwhile.
    boot_at       BIGINT
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX unstuck_workers_standing ON unstuck_workers (id) WHERE ended_at IS NULL;
CREATE INDEX unstuck_workers_ended ON unstuck_workers (ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE unstuck_workflows (
    name            TEXT NOT NULL,
    code_version    TEXT NOT NULL,
    queue           TEXT NOT NULL,
    policy          TEXT NOT NULL,
    schema          TEXT NOT NULL,
    target          TEXT,
    doc             TEXT,
    registered_at   BIGINT NOT NULL,
    seen_at         BIGINT NOT NULL,
    -- When a worker whose lease held was last seen to know it. seen_at is when it was registered, which decides who is newest.
    known_at        BIGINT,
    limit_key       TEXT,
    max_timeout     DOUBLE PRECISION,
    -- What this version declares of its limits, of all its jobs together and of each limit key by itself: those of the version that the doors go by hold.
    concurrency     BIGINT,
    rate            BIGINT,
    per_us          BIGINT,
    key_concurrency BIGINT,
    key_rate        BIGINT,
    key_per_us      BIGINT,
    -- Names of what only admins see of its jobs' data, a JSON list; those of every version hold.
    redact          TEXT NOT NULL,
    PRIMARY KEY (name, code_version)
);
-- A submit asks for the newest: what was looked up before it holds no longer.
CREATE INDEX unstuck_workflows_seen ON unstuck_workflows (seen_at);

-- A job that must not start because an old body of it may still live.
CREATE TABLE unstuck_body_marks (
    job      BIGINT PRIMARY KEY,
    target   BIGINT,
    worker   BIGINT NOT NULL,
    pid      BIGINT,
    since_at BIGINT NOT NULL,
    reason   TEXT NOT NULL
);
CREATE INDEX unstuck_body_marks_target ON unstuck_body_marks (target) WHERE target IS NOT NULL;

CREATE TABLE unstuck_keys (
    tenant      TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    job         TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX unstuck_keys_expires ON unstuck_keys (expires_at);

-- xid first and by default: the global order of the feed is built from it, and nothing may forget to fill it.
CREATE TABLE unstuck_events (
    xid    XID8 NOT NULL DEFAULT pg_current_xact_id(),
    id     BIGINT GENERATED ALWAYS AS IDENTITY (CACHE 1),
    job    BIGINT NOT NULL,
    number BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    run    BIGINT NOT NULL,
    token  BIGINT NOT NULL,
    kind   TEXT NOT NULL,
    data   TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (job, number)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
-- What the feed is built from: see repeatable/5_feed.sql.
CREATE INDEX unstuck_events_xid ON unstuck_events (xid);

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

-- Who wants to run on a target: everybody enters by the line, and only a promotion under the target's lock moves the first of
-- it to ready. Higher priority first, then age; the head itself, when it comes back, stands before all others.
CREATE TABLE unstuck_line (
    target BIGINT NOT NULL,
    place  BIGINT NOT NULL,
    job    BIGINT NOT NULL,
    route  BIGINT NOT NULL,
    PRIMARY KEY (target, place, job)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX unstuck_line_route ON unstuck_line (route, job);

-- A PENDING job that waits for another to end; the rows go when it is released or ends itself.
CREATE TABLE unstuck_dependencies (
    job    BIGINT NOT NULL,
    on_job BIGINT NOT NULL,
    PRIMARY KEY (job, on_job)
);
CREATE INDEX unstuck_dependencies_on ON unstuck_dependencies (on_job, job);

CREATE TABLE unstuck_tags (
    tenant TEXT NOT NULL,
    tag    TEXT NOT NULL,
    job    BIGINT NOT NULL,
    PRIMARY KEY (tenant, tag, job)
);

-- tenant '*': of all tenants.
CREATE TABLE unstuck_pauses (
    kind     TEXT NOT NULL CHECK (kind IN ('queue', 'workflow', 'tenant', 'target')),
    name     TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    since_at BIGINT NOT NULL,
    until_at BIGINT,
    -- The instant of the clock that was asked for; NULL: a distance.
    appointed BIGINT,
    by       TEXT NOT NULL,
    reason   TEXT,
    PRIMARY KEY (kind, name, tenant)
);

-- tenant '*': all tenants together. name '*' (of kind tenant or key), 'family:*' (of kind key): each tenant or key by itself, unless it
-- has a row of its own. kind workflow_key: each limit key of the workflow of that name by itself, of that workflow's jobs alone. The row is also the lock under which a claim counts.
CREATE TABLE unstuck_limits (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind             TEXT NOT NULL CHECK (kind IN ('workflow', 'workflow_key', 'queue', 'tenant', 'key')),
    name             TEXT NOT NULL,
    tenant           TEXT NOT NULL,
    concurrency      BIGINT,
    rate             BIGINT,
    per_us           BIGINT,
    max_queued       BIGINT,
    set_at           BIGINT NOT NULL,
    set_by           TEXT NOT NULL,
    -- What the code says of the limits of a workflow and of each of its keys, kept beside what an operator has set in its place: it holds again once that is lifted.
    code_concurrency BIGINT,
    code_rate        BIGINT,
    code_per_us      BIGINT,
    UNIQUE (kind, name, tenant)
);
CREATE INDEX unstuck_limits_caps ON unstuck_limits (kind, name, tenant) WHERE max_queued IS NOT NULL;
-- Whether a kind has limits of all tenants, and of single ones, is asked once and not per route. By order and not by EXISTS, which would
-- be planned as a scan of all limits; an index of the expression and not of the tenant, which would be taken for the way to a single limit.
CREATE INDEX unstuck_limits_of_all ON unstuck_limits (kind, (tenant = '*'));

-- The starts that a rate limit counts; what is older than its window is swept.
CREATE TABLE unstuck_starts (
    limit_id BIGINT NOT NULL,
    bucket   TEXT NOT NULL,
    at       BIGINT NOT NULL,
    job      BIGINT NOT NULL,
    -- A row is so many starts of one slice, a hundredth of the limit's window; `at` is the slice's end, so that none of them is
    -- counted for less than the window. (Of a rate of a hundred or fewer every start is a slice by itself.) until_at: when a sweep
    -- should look at the row; who changes the limit's window makes that wrong, so the sweep looks at the limit as well.
    starts   BIGINT NOT NULL DEFAULT 1,
    until_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (limit_id, bucket, at, job)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX unstuck_starts_until ON unstuck_starts (until_at);

CREATE TABLE unstuck_tenants (
    name   TEXT PRIMARY KEY,
    weight BIGINT NOT NULL DEFAULT 1 CHECK (weight > 0),
    set_at BIGINT NOT NULL,
    set_by TEXT NOT NULL
);

-- What people ask of a worker itself: to recycle a process, to drain, to show a stack. The worker reads its own and answers.
-- subject: '' | a pid | 'JOB:TOKEN'. Answered once: done_at is set with the answer, and neither changes again.
CREATE TABLE unstuck_orders (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker     BIGINT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('recycle', 'drain', 'stack', 'kill')),
    subject    TEXT NOT NULL DEFAULT '',
    by         TEXT NOT NULL,
    given_at   BIGINT NOT NULL,
    done_at    BIGINT,
    answer     TEXT,
    is_refused INTEGER NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02);
-- All that a poll touches, and what makes a repeated order the same order while it is open.
CREATE UNIQUE INDEX unstuck_orders_open ON unstuck_orders (worker, kind, subject) WHERE done_at IS NULL;
CREATE INDEX unstuck_orders_given ON unstuck_orders (given_at);

-- The guard: workflows that got stuck too often, or that somebody shut out, are accepted nowhere and started by nobody.
-- What people change while everything runs; what is not here has its default. value is JSON.
CREATE TABLE unstuck_settings (
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL,
    set_at BIGINT NOT NULL,
    set_by TEXT NOT NULL
);

-- The lock under which marks are made and counted. Marks up to cleared_upto count no more: somebody lifted an entry.
CREATE TABLE unstuck_breakers (
    tenant       TEXT NOT NULL,
    workflow     TEXT NOT NULL,
    cleared_upto BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, workflow)
) WITH (fillfactor = 50);
-- The breakers of one workflow, of all tenants: they count together too.
CREATE INDEX unstuck_breakers_workflow ON unstuck_breakers (workflow, tenant);

-- A mark against a workflow. They are made under the breaker's lock, so the ids of one workflow follow its commits.
CREATE TABLE unstuck_stucks (
    id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant    TEXT NOT NULL,
    workflow  TEXT NOT NULL,
    at        BIGINT NOT NULL,
    job       BIGINT NOT NULL,
    token     BIGINT NOT NULL,
    kind      TEXT NOT NULL CHECK (kind IN ('stuck', 'crash', 'loss')),
    -- 0: it was past its grace in a process that was silent as a whole, and nothing says whose doing that was.
    is_proven SMALLINT NOT NULL DEFAULT 1
);
CREATE INDEX unstuck_stucks_workflow ON unstuck_stucks (tenant, workflow, id);
CREATE INDEX unstuck_stucks_at ON unstuck_stucks (at);

-- tenant '*': of all tenants. One active entry at a time, and all there ever were. probe: the one job that may pass;
-- renewed_at: when the last one got stuck again.
CREATE TABLE unstuck_blacklist (
    id             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant         TEXT NOT NULL,
    workflow       TEXT NOT NULL,
    reason         TEXT NOT NULL,
    blacklisted_at BIGINT NOT NULL,
    blacklisted_by TEXT NOT NULL,
    stuck_count    BIGINT,
    removed_at     BIGINT,
    removed_by     TEXT,
    renewed_at     BIGINT,
    probe          BIGINT
);
CREATE UNIQUE INDEX unstuck_blacklist_active ON unstuck_blacklist (workflow, tenant) WHERE removed_at IS NULL;
CREATE INDEX unstuck_blacklist_workflow ON unstuck_blacklist (workflow, id);

-- Jobs that are PENDING because of an entry; when it is removed, they go on.
CREATE TABLE unstuck_blacklist_held (
    entry BIGINT NOT NULL,
    job   BIGINT NOT NULL,
    PRIMARY KEY (entry, job)
);

CREATE TABLE unstuck_notifications (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       BIGINT NOT NULL,
    title    TEXT NOT NULL,
    message  TEXT NOT NULL,
    severity TEXT NOT NULL,
    link     TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    workflow TEXT NOT NULL,
    count    BIGINT,
    acked_at BIGINT,
    acked_by TEXT
);
CREATE INDEX unstuck_notifications_open ON unstuck_notifications (id) WHERE acked_at IS NULL;

-- What people did. detail is JSON.
CREATE TABLE unstuck_audit (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      BIGINT NOT NULL,
    by      TEXT NOT NULL,
    verb    TEXT NOT NULL,
    subject TEXT NOT NULL,
    tenant  TEXT NOT NULL,
    detail  TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX unstuck_audit_at ON unstuck_audit (at);

-- One row. `era` names this feed in its cursors. Positions up to `floor` are forgotten. Of the events with an id up to `restored`
-- none is taken any more, whatever its xid says: they were written in another cluster, before a dump was restored into this one.
CREATE TABLE unstuck_sequencer (
    era      TEXT NOT NULL,
    position BIGINT NOT NULL DEFAULT 0,
    floor    BIGINT NOT NULL DEFAULT 0,
    since    XID8 NOT NULL,
    open     XID8[] NOT NULL,
    high     BIGINT NOT NULL DEFAULT 0,
    restored BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- The feed begins here: what was committed before has no position.
INSERT INTO unstuck_sequencer (era, since, open)
SELECT SUBSTR(MD5(CAST(clock_timestamp() AS TEXT) || RANDOM()), 1, 8), pg_snapshot_xmax(now.snapshot),
       ARRAY(SELECT pg_snapshot_xip(now.snapshot))
  FROM (SELECT pg_current_snapshot() AS snapshot) AS now;

-- Positions first..last, without gaps: the events (jobs[i], numbers[i]). A row holds some hundreds, because a row per event would
-- cost three times as much.
CREATE TABLE unstuck_feed (
    last    BIGINT PRIMARY KEY,
    first   BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    jobs    BIGINT[] NOT NULL,
    numbers BIGINT[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- Durable flow: finished steps, waits and what answers them, children, and what a job has used of its budget.
-- Recorded once under the fence; a resume keeps them, one from the start drops them. result is JSON.
CREATE TABLE unstuck_steps (
    job         BIGINT NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    ordinal     BIGINT NOT NULL,
    run         BIGINT NOT NULL,
    token       BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    result      TEXT NOT NULL,
    PRIMARY KEY (job, name, ordinal)
);

-- One row per wait of a run. address: whose events answer it, 'job:UID' or 'topic:NAME'. token: of the attempt that parked; it
-- orders the waits of a job, which times do not when a clock is set back. answer: how it ended, NULL while it is open; whoever
-- writes it first, under this row's lock, has decided. spec and payload are JSON.
CREATE TABLE unstuck_waits (
    job         BIGINT NOT NULL,
    run         BIGINT NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('event', 'approval', 'time', 'children')),
    name        TEXT NOT NULL,
    address     TEXT COLLATE "C",
    spec        TEXT NOT NULL DEFAULT '{}',
    token       BIGINT NOT NULL,
    asked_at    BIGINT NOT NULL,
    until_at    BIGINT NOT NULL,
    answer      TEXT CHECK (answer IN ('event', 'approved', 'rejected', 'due', 'ended', 'default', 'timeout')),
    payload     TEXT,
    answered_at BIGINT,
    by          TEXT,
    comment     TEXT,
    PRIMARY KEY (job, run, key)
);
CREATE INDEX unstuck_waits_address ON unstuck_waits (tenant, address, name, asked_at) WHERE answer IS NULL AND address IS NOT NULL;
CREATE INDEX unstuck_waits_open ON unstuck_waits (tenant, kind, asked_at, job) WHERE answer IS NULL;
-- The last wait of a run, which alone can be open: who wakes a job that has waited thousands of times reads that one.
CREATE INDEX unstuck_waits_asked ON unstuck_waits (job, run, token);

-- Events that no wait has taken yet. run: of the job they were sent to; NULL on a topic.
CREATE TABLE unstuck_unclaimed_events (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     TEXT NOT NULL,
    address    TEXT COLLATE "C" NOT NULL,
    event      TEXT NOT NULL,
    payload    TEXT NOT NULL,
    run        BIGINT,
    by         TEXT NOT NULL,
    sent_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX unstuck_unclaimed_events_address ON unstuck_unclaimed_events (tenant, address, event, id);
CREATE INDEX unstuck_unclaimed_events_expires ON unstuck_unclaimed_events (expires_at);

-- Ids that senders gave their events: the same one again, to the same job or topic, changes nothing while it is kept. job, number: what became of the
-- event. Written under the address's lock.
CREATE TABLE unstuck_event_ids (
    tenant      TEXT NOT NULL,
    address     TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT NOT NULL,
    job         TEXT,
    number      BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant, address, id)
);
CREATE INDEX unstuck_event_ids_expires ON unstuck_event_ids (expires_at);

-- Who spawned whom. on_end: what a failed parent's end does to it. left_at: its parent ended so, and it is to be cancelled.
-- payer: of those above it the nearest whose budget is its tree's; NULL: there is none.
CREATE TABLE unstuck_children (
    child   BIGINT PRIMARY KEY,
    parent  BIGINT NOT NULL,
    run     BIGINT NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    ordinal BIGINT NOT NULL,
    depth   BIGINT NOT NULL,
    on_end  TEXT NOT NULL CHECK (on_end IN ('cancel', 'leave')),
    left_at BIGINT,
    payer   BIGINT
);
CREATE UNIQUE INDEX unstuck_children_parent ON unstuck_children (parent, name, ordinal);
CREATE INDEX unstuck_children_left ON unstuck_children (left_at, child) WHERE left_at IS NOT NULL;

-- token, serial: the last spending that was counted, so that a repeated one is not; 0: it has spent nothing itself.
-- tree: what it and all below it have spent, while its budget is its tree's; else 0.
CREATE TABLE unstuck_usage (
    job    BIGINT NOT NULL,
    run    BIGINT NOT NULL,
    unit   TEXT COLLATE "C" NOT NULL,
    used   DOUBLE PRECISION NOT NULL,
    token  BIGINT NOT NULL,
    serial BIGINT NOT NULL,
    tree   DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (job, run, unit)
) WITH (fillfactor = 70);

-- Partial results: what handlers give before they have ended.
-- One row per name, written under the fence. number: of all writes of its job the how-manieth this was; it never begins anew, so that
-- who follows asks for what came after the last one seen. serial: of the errand that wrote it, so that one that comes late, or
-- twice, changes nothing. value is JSON. A resume from the start leaves one row without a name, which keeps the number.
CREATE TABLE unstuck_parts (
    job    BIGINT NOT NULL,
    name   TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    run    BIGINT NOT NULL,
    token  BIGINT NOT NULL,
    serial BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (job, name)
);
CREATE UNIQUE INDEX unstuck_parts_number ON unstuck_parts (job, number);

-- What a sweep, an ingest or a settle could not write although the store answered: set aside, so that it delays nothing but itself, and
-- tried again alone. duty: what could not be done; item: the job's number (of duty 'target': the target's).
CREATE TABLE unstuck_quarantine (
    duty     TEXT NOT NULL,
    item     BIGINT NOT NULL,
    since_at BIGINT NOT NULL,
    tried_at BIGINT NOT NULL,
    tries    BIGINT NOT NULL,
    error    TEXT NOT NULL,
    by       TEXT NOT NULL,
    PRIMARY KEY (duty, item)
);
CREATE INDEX unstuck_quarantine_item ON unstuck_quarantine (item);

-- A verb over all the jobs that a filter wants. filter: as it was when somebody asked (JSON); upto: the newest job at that time, younger ones do not count.
-- cursor: jobs up to here have been looked at; those that matched stand in unstuck_bulk_jobs until they are done, refused or seen to have moved on.
-- key: what makes a repeated start the same bulk. reasons: the first refusals (JSON).
CREATE TABLE unstuck_bulks (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        TEXT NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    verb       TEXT NOT NULL CHECK (verb IN ('cancel', 'interrupt', 'resume', 'retry', 'release', 'skip')),
    filter     TEXT NOT NULL,
    reason     TEXT,
    from_start SMALLINT NOT NULL DEFAULT 0,
    force      SMALLINT NOT NULL DEFAULT 0,
    by         TEXT NOT NULL,
    expected   BIGINT,
    state      TEXT NOT NULL DEFAULT 'RUNNING' CHECK (state IN ('RUNNING', 'DONE', 'CANCELLED', 'FAILED')),
    began_at   BIGINT NOT NULL,
    carried_at BIGINT NOT NULL,
    ended_at   BIGINT,
    ended_by   TEXT,
    error      TEXT,
    upto       BIGINT NOT NULL,
    cursor     BIGINT NOT NULL DEFAULT 0,
    matched    BIGINT NOT NULL DEFAULT 0,
    done       BIGINT NOT NULL DEFAULT 0,
    refused    BIGINT NOT NULL DEFAULT 0,
    moved_on   BIGINT NOT NULL DEFAULT 0,
    reasons    TEXT NOT NULL DEFAULT '[]'
) WITH (fillfactor = 50);
-- All that a janitor's turn reads where nothing is to be done.
CREATE INDEX unstuck_bulks_running ON unstuck_bulks (id) WHERE state = 'RUNNING';
CREATE INDEX unstuck_bulks_ended ON unstuck_bulks (ended_at) WHERE ended_at IS NOT NULL;

-- Jobs of a bulk that are still to be moved. held_at: when somebody else first held one of its rows; tried_at: when last, 0: never.
CREATE TABLE unstuck_bulk_jobs (
    bulk     BIGINT NOT NULL,
    job      BIGINT NOT NULL,
    held_at  BIGINT,
    tried_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (bulk, job)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX unstuck_bulk_jobs_tried ON unstuck_bulk_jobs (bulk, tried_at, job);

-- The series: how many runs ended in each minute and in each hour, by their state, by how long they had waited (from due to claimed) and by how long their last attempt ran.
-- wait_N and run_N: those within the N-th bound of model/series.py; the last: those beyond all. A row for each that something ended of.
-- step: 60 or 3600 seconds. A week of hours is read as quickly as some hours of minutes.
CREATE TABLE unstuck_series (
    step      INTEGER NOT NULL,
    at        BIGINT NOT NULL,
    tenant    TEXT NOT NULL,
    queue     TEXT NOT NULL,
    workflow  TEXT NOT NULL,
    completed INTEGER NOT NULL DEFAULT 0,
    failed    INTEGER NOT NULL DEFAULT 0,
    timeout   INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0,
    wait_1    INTEGER NOT NULL DEFAULT 0,
    wait_2    INTEGER NOT NULL DEFAULT 0,
    wait_3    INTEGER NOT NULL DEFAULT 0,
    wait_4    INTEGER NOT NULL DEFAULT 0,
    wait_5    INTEGER NOT NULL DEFAULT 0,
    wait_6    INTEGER NOT NULL DEFAULT 0,
    wait_7    INTEGER NOT NULL DEFAULT 0,
    wait_8    INTEGER NOT NULL DEFAULT 0,
    wait_9    INTEGER NOT NULL DEFAULT 0,
    wait_10   INTEGER NOT NULL DEFAULT 0,
    wait_11   INTEGER NOT NULL DEFAULT 0,
    wait_12   INTEGER NOT NULL DEFAULT 0,
    run_1     INTEGER NOT NULL DEFAULT 0,
    run_2     INTEGER NOT NULL DEFAULT 0,
    run_3     INTEGER NOT NULL DEFAULT 0,
    run_4     INTEGER NOT NULL DEFAULT 0,
    run_5     INTEGER NOT NULL DEFAULT 0,
    run_6     INTEGER NOT NULL DEFAULT 0,
    run_7     INTEGER NOT NULL DEFAULT 0,
    run_8     INTEGER NOT NULL DEFAULT 0,
    run_9     INTEGER NOT NULL DEFAULT 0,
    run_10    INTEGER NOT NULL DEFAULT 0,
    run_11    INTEGER NOT NULL DEFAULT 0,
    run_12    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (step, at, tenant, queue, workflow)
) WITH (fillfactor = 90);
CREATE INDEX unstuck_series_tenant ON unstuck_series (tenant, step, at);

-- One row. What ended before `until` has been counted, and is not counted again.
CREATE TABLE unstuck_counted (
    one   SMALLINT PRIMARY KEY CHECK (one = 1),
    until BIGINT NOT NULL
);
INSERT INTO unstuck_counted (one, until) VALUES (1, 0);

-- `moved`: the `ahead` that every appointment has been moved for. boot and anchor are SQLite's.
CREATE TABLE unstuck_clock (
    one      SMALLINT PRIMARY KEY CHECK (one = 1),
    ahead    BIGINT NOT NULL,
    moved    BIGINT NOT NULL,
    leaps    BIGINT NOT NULL,
    leapt_at BIGINT,
    leap     BIGINT,
    noticed  TEXT,
    boot     TEXT,
    anchor   BIGINT
);
INSERT INTO unstuck_clock (one, ahead, moved, leaps) VALUES (1, 0, 0, 0);
