-- The same as on PostgreSQL; a table whose constraint changes is made anew.
-- Order: who runs next on a target, who is shut out for now, and who waits for whom.

DROP VIEW unstuck_job_rows;

-- A job's route is also its limit key: what may not run for its key's sake waits on a route of its own and is scanned by nobody.
CREATE TABLE unstuck_new_routes (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT NOT NULL,
    queue     TEXT NOT NULL,
    workflow  TEXT NOT NULL,
    limit_key TEXT NOT NULL DEFAULT ''
);
INSERT INTO unstuck_new_routes (id, tenant, queue, workflow) SELECT id, tenant, queue, workflow FROM unstuck_routes ORDER BY id;
DROP TABLE unstuck_routes;
ALTER TABLE unstuck_new_routes RENAME TO unstuck_routes;
CREATE UNIQUE INDEX unstuck_routes_name ON unstuck_routes (tenant, queue, workflow, limit_key);

-- head: whose turn it is. It stays head while it is ready, runs, waits or blocks; head_place is its place in the line when it
-- was picked, for a newcomer with a higher priority to compare itself with.
ALTER TABLE unstuck_targets DROP COLUMN low_rank;
ALTER TABLE unstuck_targets DROP COLUMN low_job;
ALTER TABLE unstuck_targets ADD COLUMN head_place INTEGER;
CREATE INDEX unstuck_targets_blocked ON unstuck_targets (tenant, blocked_at, id) WHERE blocked_by IS NOT NULL;

-- Who wants to run on a target: everybody enters by the line, and only a promotion under the target's lock moves the first of
-- it to ready. Higher priority first, then age; the head itself, when it comes back, stands before all others.
CREATE TABLE unstuck_line (
    target INTEGER NOT NULL,
    place  INTEGER NOT NULL,
    job    INTEGER NOT NULL,
    route  INTEGER NOT NULL,
    PRIMARY KEY (target, place, job)
) WITHOUT ROWID;
CREATE INDEX unstuck_line_route ON unstuck_line (route, job);

-- What a promotion should look at: a target whose line grew, or a job that ended or begins while others depend on it.
DROP TABLE unstuck_inbox;
CREATE TABLE unstuck_inbox (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    target INTEGER,
    job    INTEGER
);

-- started: a handler of it has begun, so half of its work may be done. on_hold: a person must release it.
ALTER TABLE unstuck_jobs ADD COLUMN started INTEGER NOT NULL DEFAULT 0;
ALTER TABLE unstuck_jobs ADD COLUMN on_hold INTEGER NOT NULL DEFAULT 0;
ALTER TABLE unstuck_jobs ADD COLUMN after_failure TEXT CHECK (after_failure IN ('fail', 'run'));
DROP INDEX unstuck_jobs_target;
DROP INDEX unstuck_jobs_resting;
CREATE INDEX unstuck_jobs_target ON unstuck_jobs (target, id) WHERE target IS NOT NULL;
-- Of an ended job only done says the state: what is counted as resting does rest.
UPDATE unstuck_jobs SET state = 'QUEUED' WHERE state <> 'QUEUED' AND id IN (SELECT job FROM unstuck_done);
CREATE INDEX unstuck_jobs_resting ON unstuck_jobs (tenant, state, id) WHERE state <> 'QUEUED';
CREATE INDEX unstuck_jobs_route ON unstuck_jobs (route, id);
CREATE INDEX unstuck_jobs_error ON unstuck_jobs (error_type, id) WHERE error_type IS NOT NULL;

CREATE INDEX unstuck_done_route ON unstuck_done (route, state);
CREATE INDEX unstuck_done_error ON unstuck_done (error_type, job) WHERE error_type IS NOT NULL;

ALTER TABLE unstuck_timers ADD COLUMN route INTEGER;
UPDATE unstuck_timers SET route = (SELECT j.route FROM unstuck_jobs j WHERE j.id = unstuck_timers.job);
CREATE INDEX unstuck_timers_route ON unstuck_timers (route, job) WHERE kind = 'start';

-- A PENDING job that waits for another to end; the rows go when it is released or ends itself.
CREATE TABLE unstuck_dependencies (
    job    INTEGER NOT NULL,
    on_job INTEGER NOT NULL,
    PRIMARY KEY (job, on_job)
) WITHOUT ROWID;
CREATE INDEX unstuck_dependencies_on ON unstuck_dependencies (on_job, job);
-- A PENDING job was told to go on waiting while this attempt was open: it must not close by the statement that looks for
-- dependants and locks at once, because that one may have looked too early.
ALTER TABLE unstuck_running ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;

CREATE TABLE unstuck_tags (
    tenant TEXT NOT NULL,
    tag    TEXT NOT NULL,
    job    INTEGER NOT NULL,
    PRIMARY KEY (tenant, tag, job)
) WITHOUT ROWID;

-- tenant '*': of all tenants.
CREATE TABLE unstuck_pauses (
    kind     TEXT NOT NULL CHECK (kind IN ('queue', 'workflow', 'tenant', 'target')),
    name     TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    since_at INTEGER NOT NULL,
    until_at INTEGER,
    by       TEXT NOT NULL,
    reason   TEXT,
    PRIMARY KEY (kind, name, tenant)
) WITHOUT ROWID;

-- tenant '*': all tenants together. name '*' (of kind tenant or key), 'family:*' (of kind key): each tenant or key by itself, unless it
-- has a row of its own. The row is also the lock under which a claim counts.
CREATE TABLE unstuck_limits (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    kind        TEXT NOT NULL CHECK (kind IN ('workflow', 'queue', 'tenant', 'key')),
    name        TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    concurrency INTEGER,
    rate        INTEGER,
    per_us      INTEGER,
    max_queued  INTEGER,
    set_at      INTEGER NOT NULL,
    set_by      TEXT NOT NULL,
    UNIQUE (kind, name, tenant)
);

CREATE INDEX unstuck_limits_caps ON unstuck_limits (kind, name, tenant) WHERE max_queued IS NOT NULL;

-- The starts that a rate limit counts; what is older than its window is swept.
CREATE TABLE unstuck_starts (
    limit_id INTEGER NOT NULL,
    bucket   TEXT NOT NULL,
    at       INTEGER NOT NULL,
    job      INTEGER NOT NULL,
    PRIMARY KEY (limit_id, bucket, at, job)
) WITHOUT ROWID;

CREATE TABLE unstuck_tenants (
    name   TEXT PRIMARY KEY,
    weight INTEGER NOT NULL DEFAULT 1 CHECK (weight > 0),
    set_at INTEGER NOT NULL,
    set_by TEXT NOT NULL
);

-- {"queues": [...], "workflows": [...]}, as the worker claims by it; empty until its app is imported.
ALTER TABLE unstuck_workers ADD COLUMN serves TEXT NOT NULL DEFAULT '{}';

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
       CASE WHEN t.blocked_by <> j.id THEN 1 ELSE 0 END AS is_blocked
  FROM unstuck_jobs j
  LEFT JOIN unstuck_running r ON r.job = j.id
  LEFT JOIN unstuck_workers w ON w.id = r.worker
  LEFT JOIN unstuck_done d ON d.job = j.id
  LEFT JOIN unstuck_holds h ON h.job = j.id
  LEFT JOIN unstuck_targets t ON t.id = j.target;
