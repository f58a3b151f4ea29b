-- The same as on PostgreSQL.
-- The guard: workflows that got stuck too often, or that somebody shut out, are accepted nowhere and started by nobody.

-- What people change while everything runs; what is not here has its default. value is JSON.
CREATE TABLE unstuck_settings (
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    set_by TEXT NOT NULL
);

-- The lock under which marks are made and counted. Marks up to cleared_upto count no more: somebody lifted an entry.
CREATE TABLE unstuck_breakers (
    tenant       TEXT NOT NULL,
    workflow     TEXT NOT NULL,
    cleared_upto INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, workflow)
);

-- A mark against a workflow. They are made under the breaker's lock, so the ids of one workflow follow its commits.
CREATE TABLE unstuck_stucks (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT NOT NULL,
    workflow TEXT NOT NULL,
    at       INTEGER NOT NULL,
    job      INTEGER NOT NULL,
    token    INTEGER NOT NULL,
    kind     TEXT NOT NULL CHECK (kind IN ('stuck', 'crash', 'loss'))
);
CREATE INDEX unstuck_stucks_workflow ON unstuck_stucks (tenant, workflow, id);
CREATE INDEX unstuck_stucks_at ON unstuck_stucks (at);

-- tenant '*': of all tenants. One active entry at a time, and all there ever were. probe: the one job that may pass;
-- renewed_at: when the last one got stuck again.
CREATE TABLE unstuck_blacklist (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant         TEXT NOT NULL,
    workflow       TEXT NOT NULL,
    reason         TEXT NOT NULL,
    blacklisted_at INTEGER NOT NULL,
    blacklisted_by TEXT NOT NULL,
    stuck_count    INTEGER,
    removed_at     INTEGER,
    removed_by     TEXT,
    renewed_at     INTEGER,
    probe          INTEGER
);
CREATE UNIQUE INDEX unstuck_blacklist_active ON unstuck_blacklist (workflow, tenant) WHERE removed_at IS NULL;
CREATE INDEX unstuck_blacklist_workflow ON unstuck_blacklist (workflow, id);

-- Jobs that are PENDING because of an entry; when it is removed, they go on.
CREATE TABLE unstuck_blacklist_held (
    entry INTEGER NOT NULL,
    job   INTEGER NOT NULL,
    PRIMARY KEY (entry, job)
);

CREATE TABLE unstuck_notifications (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    title    TEXT NOT NULL,
    message  TEXT NOT NULL,
    severity TEXT NOT NULL,
    link     TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    workflow TEXT NOT NULL,
    count    INTEGER,
    acked_at INTEGER,
    acked_by TEXT
);
CREATE INDEX unstuck_notifications_open ON unstuck_notifications (id) WHERE acked_at IS NULL;

-- What people did. detail is JSON.
CREATE TABLE unstuck_audit (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    by      TEXT NOT NULL,
    verb    TEXT NOT NULL,
    subject TEXT NOT NULL,
    tenant  TEXT NOT NULL,
    detail  TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX unstuck_audit_at ON unstuck_audit (at);

-- From an entry to the routes it shuts.
CREATE INDEX unstuck_routes_workflow ON unstuck_routes (workflow, tenant, id);

-- The gates of a route, as before, and the blacklist among them. probe: the one job that this gate lets through.
DROP VIEW unstuck_gates;
CREATE VIEW unstuck_gates AS
SELECT r.id AS route, 'queue_paused' AS code, 0 AS is_limit, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER) AS used, CAST(NULL AS INTEGER) AS most, CAST(NULL AS INTEGER) AS free_at,
       CAST(NULL AS INTEGER) AS probe
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'queue' AND p.name = r.queue AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'workflow_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER)
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'workflow' AND p.name = r.workflow AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'tenant_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER)
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'tenant' AND p.name = r.tenant AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT route, 'concurrency_limit', 1, kind, bucket, tenant, NULL, NULL, set_by, NULL, running, concurrency, NULL, NULL
  FROM unstuck_limit_room
 WHERE running >= concurrency
 UNION ALL
SELECT route, 'rate_limited', 1, kind, bucket, tenant, NULL, NULL, set_by, NULL, started, rate, first_at + per_us, NULL
  FROM unstuck_limit_room
 WHERE started >= rate
 UNION ALL
SELECT r.id, 'blacklisted', 0, 'workflow', b.workflow, b.tenant, b.blacklisted_at, CAST(NULL AS INTEGER), b.blacklisted_by, b.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), b.probe
  FROM unstuck_routes r
  CROSS JOIN unstuck_blacklist b ON b.workflow = r.workflow AND b.tenant IN (r.tenant, '*')
 WHERE b.removed_at IS NULL;

-- Jobs in the queue of a workflow that is shut out: ready, or in the line of their target.
CREATE VIEW unstuck_at_the_gate AS
SELECT b.id AS entry, r.id AS route, w.job
  FROM unstuck_blacklist b
  CROSS JOIN unstuck_routes r ON r.workflow = b.workflow AND (b.tenant = '*' OR r.tenant = b.tenant)
  CROSS JOIN unstuck_ready w ON w.route = r.id
 WHERE b.removed_at IS NULL AND (b.probe IS NULL OR b.probe <> w.job)
 UNION ALL
SELECT b.id, r.id, w.job
  FROM unstuck_blacklist b
  CROSS JOIN unstuck_routes r ON r.workflow = b.workflow AND (b.tenant = '*' OR r.tenant = b.tenant)
  CROSS JOIN unstuck_line w ON w.route = r.id
 WHERE b.removed_at IS NULL AND (b.probe IS NULL OR b.probe <> w.job);
