-- Other systems' calls that start a workflow. uid: the last part of its address, which nobody guesses. body: what it runs, by which scheme calls are
-- signed, and how arguments are made of them (JSON, as model/hooks.py writes it). secrets: a JSON list of [stored, since, until], the newest first, each stored as
-- sealing.py writes it; until NULL: the one in use. is_sealed: whoever reads the database cannot read them. version: one more with every change.
CREATE TABLE unstuck_hooks (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid          TEXT NOT NULL UNIQUE,
    tenant       TEXT NOT NULL,
    name         TEXT NOT NULL,
    workflow     TEXT NOT NULL,
    body         TEXT NOT NULL,
    secrets      TEXT NOT NULL,
    is_sealed    BIGINT NOT NULL,
    version      BIGINT NOT NULL DEFAULT 1,
    created_at   BIGINT NOT NULL,
    created_by   TEXT NOT NULL,
    changed_at   BIGINT NOT NULL,
    changed_by   TEXT NOT NULL,
    paused_at    BIGINT,
    paused_by    TEXT,
    pause_reason TEXT,
    UNIQUE (tenant, name)
);

-- What was done about each call. key: by which the same delivery is known when it comes again; of those that were accepted there is one of a key, with its job.
-- calls: how often it came; of refused ones whose sender is not known, a row may stand for several.
CREATE TABLE unstuck_hook_deliveries (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hook     BIGINT NOT NULL,
    key      TEXT,
    at       BIGINT NOT NULL,
    last_at  BIGINT NOT NULL,
    outcome  TEXT NOT NULL CHECK (outcome IN ('accepted', 'refused')),
    problem  TEXT,
    reason   TEXT,
    status   BIGINT NOT NULL,
    job      TEXT,
    address  TEXT,
    size     BIGINT,
    calls    BIGINT NOT NULL DEFAULT 1,
    version  BIGINT NOT NULL
);
CREATE UNIQUE INDEX unstuck_hook_deliveries_key ON unstuck_hook_deliveries (hook, key) WHERE outcome = 'accepted';
CREATE INDEX unstuck_hook_deliveries_of ON unstuck_hook_deliveries (hook, id);
CREATE INDEX unstuck_hook_deliveries_at ON unstuck_hook_deliveries (at, id);

-- Workflows whose jobs are made of the ends of others, as each version of the code says it; app: whose code that is; tenant: whose jobs
-- it follows, '*' everybody's. body: which ends, and whose (JSON, as
-- model/ends.py writes it).
CREATE TABLE unstuck_followers (
    workflow     TEXT NOT NULL,
    code_version TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    app          TEXT NOT NULL,
    body         TEXT NOT NULL,
    PRIMARY KEY (workflow, code_version, tenant)
);

-- How far the feed was read for them; no row: there are none. What ended before since is followed by nothing. One at a time
-- reads, as long as its hold lasts.
CREATE TABLE unstuck_ends_read (
    one        BIGINT PRIMARY KEY CHECK (one = 1),
    cursor     TEXT NOT NULL,
    since      BIGINT NOT NULL,
    holder     TEXT NOT NULL,
    held_until BIGINT NOT NULL
);

-- What was made of an end: a job, or the reason why there is none. The key is what makes it once, whoever does it.
CREATE TABLE unstuck_ends_followed (
    job    TEXT NOT NULL,
    run    BIGINT NOT NULL,
    hook   TEXT NOT NULL,
    at     BIGINT NOT NULL,
    made   TEXT,
    reason TEXT,
    PRIMARY KEY (job, run, hook)
);
CREATE INDEX unstuck_ends_followed_at ON unstuck_ends_followed (at);
