-- Where events of the feed are sent. tenant '*': those of all tenants, and of the platform. filter: JSON, as model/webhooks.py writes it. secret: what signs, as
-- sealing.py keeps it; old_secret signs beside it until old_secret_until. position: how far the feed was copied out for it; NULL: it is not (disabled). reached: how far
-- it ever was; below that is a replay. since_at: no event from before then. due_at: when the first of its deliveries is; NULL: none waits for a time. rest_until: nothing is sent before. turn_at:
-- when a sender last had it. lease: the sender that has it, until leased_until. failures: tries in a row that were not taken, the first failing_since.
CREATE TABLE unstuck_webhooks (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant           TEXT NOT NULL,
    name             TEXT NOT NULL,
    url              TEXT NOT NULL,
    filter           TEXT NOT NULL,
    secret           TEXT NOT NULL,
    old_secret       TEXT,
    old_secret_until INTEGER,
    state            TEXT NOT NULL DEFAULT 'ACTIVE' CHECK (state IN ('ACTIVE', 'PAUSED', 'DISABLED')),
    state_at         INTEGER NOT NULL,
    state_by         TEXT NOT NULL,
    state_reason     TEXT,
    version          INTEGER NOT NULL DEFAULT 1,
    created_at       INTEGER NOT NULL,
    created_by       TEXT NOT NULL,
    changed_at       INTEGER NOT NULL,
    changed_by       TEXT NOT NULL,
    position         INTEGER,
    reached          INTEGER NOT NULL DEFAULT 0,
    since_at         INTEGER,
    due_at           INTEGER,
    rest_until       INTEGER NOT NULL DEFAULT 0,
    turn_at          INTEGER NOT NULL DEFAULT 0,
    lease            TEXT,
    leased_until     INTEGER NOT NULL DEFAULT 0,
    failures         INTEGER NOT NULL DEFAULT 0,
    failing_since    INTEGER,
    last_status      INTEGER,
    last_error       TEXT,
    tried_at         INTEGER,
    taken_at         INTEGER,
    UNIQUE (tenant, name)
);
CREATE INDEX unstuck_webhooks_due ON unstuck_webhooks (turn_at, id) WHERE state = 'ACTIVE' AND due_at IS NOT NULL;
CREATE INDEX unstuck_webhooks_copied ON unstuck_webhooks (position) WHERE position IS NOT NULL;

-- What is sent to each, once per webhook and event (message). place: the event's in the feed; 0: a test. about: those about the same thing go one after the other, by
-- their places. due_at: when it is tried next; NULL: it is not, or waits behind an earlier one. tried_since: the first try. attempts: JSON, the tries.
CREATE TABLE unstuck_deliveries (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook      INTEGER NOT NULL,
    tenant       TEXT NOT NULL,
    message      TEXT NOT NULL UNIQUE,
    place        INTEGER NOT NULL,
    about        TEXT NOT NULL,
    kind         TEXT NOT NULL,
    job          TEXT,
    happened_at  INTEGER NOT NULL,
    body         TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'WAITING' CHECK (state IN ('WAITING', 'DELIVERED', 'FAILED')),
    at           INTEGER NOT NULL,
    due_at       INTEGER,
    tries        INTEGER NOT NULL DEFAULT 0,
    tried_since  INTEGER,
    ended_at     INTEGER,
    last_status  INTEGER,
    last_error   TEXT,
    attempts     TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX unstuck_deliveries_due ON unstuck_deliveries (webhook, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX unstuck_deliveries_about ON unstuck_deliveries (webhook, about, place, id) WHERE state = 'WAITING';
CREATE INDEX unstuck_deliveries_waiting ON unstuck_deliveries (webhook, at) WHERE state = 'WAITING';
CREATE INDEX unstuck_deliveries_of ON unstuck_deliveries (webhook, id);
CREATE INDEX unstuck_deliveries_tenant ON unstuck_deliveries (tenant, id);
CREATE INDEX unstuck_deliveries_at ON unstuck_deliveries (at, id);
