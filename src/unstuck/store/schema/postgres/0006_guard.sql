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

-- A mark against a workflow. They are made under the breaker's lock, so the ids of one workflow follow its commits.
CREATE TABLE unstuck_stucks (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant   TEXT NOT NULL,
    workflow TEXT NOT NULL,
    at       BIGINT NOT NULL,
    job      BIGINT NOT NULL,
    token    BIGINT NOT NULL,
    kind     TEXT NOT NULL CHECK (kind IN ('stuck', 'crash', 'loss'))
);
CREATE INDEX unstuck_stucks_workflow ON unstuck_stucks (tenant, workflow, id);
CREATE INDEX unstuck_stucks_at ON unstuck_stucks (at);

-- tenant '*': of all tenants. One active entry at a time, and all there ever were. probe: the one job that may pass;
-- renewed_at: when the last one got stuck again.
CREATE TABLE unstuck_blacklist (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      BIGINT NOT NULL,
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
CREATE OR REPLACE VIEW unstuck_gates AS
SELECT r.id AS route, 'queue_paused' AS code, 0 AS is_limit, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT) AS used, CAST(NULL AS BIGINT) AS most, CAST(NULL AS BIGINT) AS free_at,
       CAST(NULL AS BIGINT) AS probe
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'queue' AND p.name = r.queue AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'workflow_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'workflow' AND p.name = r.workflow AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'tenant_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'tenant' AND p.name = r.tenant AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT l.route, gate.code, 1, l.kind, l.bucket, l.tenant, NULL, NULL, l.set_by, NULL,
       CASE gate.code WHEN 'rate_limited' THEN l.started ELSE l.running END,
       CASE gate.code WHEN 'rate_limited' THEN l.rate ELSE l.concurrency END,
       CASE gate.code WHEN 'rate_limited' THEN l.first_at + l.per_us END, CAST(NULL AS BIGINT)
  FROM unstuck_limit_room l
  JOIN (SELECT 'concurrency_limit' AS code UNION ALL SELECT 'rate_limited') AS gate
    ON CASE gate.code WHEN 'rate_limited' THEN l.started >= l.rate ELSE l.running >= l.concurrency END
 UNION ALL
SELECT r.id, 'blacklisted', 0, 'workflow', b.workflow, b.tenant, b.blacklisted_at, CAST(NULL AS BIGINT), b.blacklisted_by, b.reason,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), b.probe
  FROM unstuck_routes r
  JOIN unstuck_blacklist b ON b.workflow = r.workflow AND b.tenant IN (r.tenant, '*')
 WHERE b.removed_at IS NULL;

-- Jobs in the queue of a workflow that is shut out: ready, or in the line of their target. OFFSET 0: from entry to route to job, never
-- by reading all that is ready.
CREATE VIEW unstuck_at_the_gate AS
SELECT b.id AS entry, r.id AS route, w.job
  FROM (SELECT id, workflow, tenant, probe FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant) AS b
 CROSS JOIN LATERAL (SELECT id FROM unstuck_routes
                      WHERE workflow = b.workflow AND (b.tenant = '*' OR tenant = b.tenant) OFFSET 0) AS r
 CROSS JOIN LATERAL (SELECT job FROM unstuck_ready WHERE route = r.id
                      UNION ALL
                     SELECT job FROM unstuck_line WHERE route = r.id OFFSET 0) AS w
 WHERE b.probe IS NULL OR b.probe <> w.job;

-- Every claim passes here, and whoever makes an entry shuts this door before it commits: it waits for the claims that are
-- inside, and those that come find it shut and take nothing. So no claim that commits after an entry has overlooked it. The
-- look comes in a statement of its own after the lock: the claim's own snapshot may be older than the entry. (ORDER BY, here and
-- elsewhere: so it reads the index of the active ones, however long the history grows.)
-- 1: there are entries, 0: there are none, -1: one is being made at this moment.
CREATE FUNCTION unstuck_pass_guard() RETURNS INTEGER LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(1970173813) THEN
        RETURN -1;
    END IF;
    IF (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL THEN
        RETURN 1;
    END IF;
    RETURN 0;
END
$$;

-- What a claim may take from a route: NULL everything, 0 nothing, else this one job. It takes the place of unstuck_is_shut,
-- which workers of an older version still call.
CREATE FUNCTION unstuck_passes(asked BIGINT, counted BOOLEAN, guarded BOOLEAN) RETURNS BIGINT LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    low  BIGINT;
    high BIGINT;
BEGIN
    IF guarded OR EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target') THEN
        SELECT MIN(COALESCE(probe, 0)), MAX(COALESCE(probe, 0)) INTO low, high
          FROM unstuck_gates WHERE route = asked AND is_limit = 0;
        IF low <> high THEN
            RETURN 0;
        END IF;
    END IF;
    IF NOT counted AND EXISTS (SELECT 1 FROM unstuck_limits) THEN
        IF EXISTS (SELECT 1 FROM unstuck_route_limits WHERE route = asked) THEN
            RETURN 0;
        END IF;
    END IF;
    RETURN low;
END
$$;
