-- What runs by the clock. body: the rule and what is to be run (JSON, as model/schedules.py writes it). owner: the app whose code declares it; NULL: a person's.
-- version: one more with every change. next_tick: the tick that comes next; NULL: none does, because it is paused without an end, has ended or was
-- removed. due_at: when that is to be fired by the engine's time; appointed: the same by the clock, of a cron line, whose ticks are instants of the clock; NULL: an interval.
-- last_tick: the newest that was decided about. quiet: so many ticks in a row made no job. removed_at: its code declares it no more.
CREATE TABLE unstuck_schedules (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       TEXT NOT NULL,
    name         TEXT NOT NULL,
    owner        TEXT,
    workflow     TEXT NOT NULL,
    body         TEXT NOT NULL,
    version      BIGINT NOT NULL DEFAULT 1,
    created_at   BIGINT NOT NULL,
    created_by   TEXT NOT NULL,
    changed_at   BIGINT NOT NULL,
    changed_by   TEXT NOT NULL,
    removed_at   BIGINT,
    paused_at    BIGINT,
    paused_until BIGINT,
    paused_by    TEXT,
    pause_reason TEXT,
    last_tick    BIGINT,
    next_tick    BIGINT,
    appointed    BIGINT,
    due_at       BIGINT,
    quiet        BIGINT NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
);
CREATE INDEX unstuck_schedules_due ON unstuck_schedules (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX unstuck_schedules_owner ON unstuck_schedules (owner) WHERE owner IS NOT NULL;
CREATE INDEX unstuck_schedules_quiet ON unstuck_schedules (id) WHERE quiet > 0;

-- What was done about each tick: the key of schedule and tick is what makes a tick fire once, whoever fires it. A row of missed ticks stands for `ticks` of them,
-- from first_tick on. is_open: its job may not have ended yet. cancels: the jobs before it are still to be asked to stop.
CREATE TABLE unstuck_firings (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule   BIGINT NOT NULL,
    tick       BIGINT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('tick', 'run_now', 'backfill')),
    outcome    TEXT NOT NULL CHECK (outcome IN ('fired', 'skipped', 'refused', 'missed')),
    at         BIGINT NOT NULL,
    by         TEXT,
    version    BIGINT NOT NULL,
    job        TEXT,
    reason     TEXT,
    ticks      BIGINT NOT NULL DEFAULT 1,
    first_tick BIGINT NOT NULL,
    is_open    BIGINT NOT NULL DEFAULT 0,
    cancels    BIGINT NOT NULL DEFAULT 0,
    UNIQUE (schedule, tick)
);
CREATE INDEX unstuck_firings_of ON unstuck_firings (schedule, id);
CREATE INDEX unstuck_firings_open ON unstuck_firings (schedule, id) WHERE is_open = 1;
CREATE INDEX unstuck_firings_job ON unstuck_firings (job) WHERE job IS NOT NULL;
CREATE INDEX unstuck_firings_cancels ON unstuck_firings (id) WHERE cancels = 1;
CREATE INDEX unstuck_firings_at ON unstuck_firings (at, id);

-- What the versions of an app declare. origin: where its workers found it. The newest version that has live workers decides what runs.
CREATE TABLE unstuck_declared (
    app           TEXT NOT NULL,
    code_version  TEXT NOT NULL,
    origin        TEXT NOT NULL,
    body          TEXT NOT NULL,
    registered_at BIGINT NOT NULL,
    seen_at       BIGINT NOT NULL,
    PRIMARY KEY (app, code_version)
);
