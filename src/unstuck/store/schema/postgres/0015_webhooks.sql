-- Where events of the feed are sent. tenant '*': those of all tenants, and of the platform. filter: JSON, as model/webhooks.py writes it. secret: what signs, as
-- sealing.py keeps it; old_secret signs beside it until old_secret_until. position: how far the feed was copied out for it; NULL: it is not (disabled). reached: how far
-- it ever was; below that is a replay. since_at: no event from before then. due_at: when the first of its deliveries is; NULL: none waits for a time. rest_until: nothing is sent before. turn_at:
-- when a sender last had it. lease: the sender that has it, until leased_until. failures: tries in a row that were not taken, the first failing_since.
CREATE TABLE unstuck_webhooks (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant           TEXT NOT NULL,
    name             TEXT NOT NULL,
    url              TEXT NOT NULL,
    filter           TEXT NOT NULL,
    secret           TEXT NOT NULL,
    old_secret       TEXT,
    old_secret_until BIGINT,
    state            TEXT NOT NULL DEFAULT 'ACTIVE' CHECK (state IN ('ACTIVE', 'PAUSED', 'DISABLED')),
    state_at         BIGINT NOT NULL,
    state_by         TEXT NOT NULL,
    state_reason     TEXT,
    version          BIGINT NOT NULL DEFAULT 1,
    created_at       BIGINT NOT NULL,
    created_by       TEXT NOT NULL,
    changed_at       BIGINT NOT NULL,
    changed_by       TEXT NOT NULL,
    position         BIGINT,
    reached          BIGINT NOT NULL DEFAULT 0,
    since_at         BIGINT,
    due_at           BIGINT,
    rest_until       BIGINT NOT NULL DEFAULT 0,
    turn_at          BIGINT NOT NULL DEFAULT 0,
    lease            TEXT,
    leased_until     BIGINT NOT NULL DEFAULT 0,
    failures         BIGINT NOT NULL DEFAULT 0,
    failing_since    BIGINT,
    last_status      BIGINT,
    last_error       TEXT,
    tried_at         BIGINT,
    taken_at         BIGINT,
    UNIQUE (tenant, name)
);
CREATE INDEX unstuck_webhooks_due ON unstuck_webhooks (turn_at, id) WHERE state = 'ACTIVE' AND due_at IS NOT NULL;
CREATE INDEX unstuck_webhooks_copied ON unstuck_webhooks (position) WHERE position IS NOT NULL;

-- What is sent to each, once per webhook and event (message). place: the event's in the feed; 0: a test. about: those about the same thing go one after the other, by
-- their places. due_at: when it is tried next; NULL: it is not, or waits behind an earlier one. tried_since: the first try. attempts: JSON, the tries.
CREATE TABLE unstuck_deliveries (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook      BIGINT NOT NULL,
    tenant       TEXT NOT NULL,
    message      TEXT NOT NULL UNIQUE,
    place        BIGINT NOT NULL,
    about        TEXT NOT NULL,
    kind         TEXT NOT NULL,
    job          TEXT,
    happened_at  BIGINT NOT NULL,
    body         TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'WAITING' CHECK (state IN ('WAITING', 'DELIVERED', 'FAILED')),
    at           BIGINT NOT NULL,
    due_at       BIGINT,
    tries        BIGINT NOT NULL DEFAULT 0,
    tried_since  BIGINT,
    ended_at     BIGINT,
    last_status  BIGINT,
    last_error   TEXT,
    attempts     TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX unstuck_deliveries_due ON unstuck_deliveries (webhook, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX unstuck_deliveries_about ON unstuck_deliveries (webhook, about, place, id) WHERE state = 'WAITING';
CREATE INDEX unstuck_deliveries_waiting ON unstuck_deliveries (webhook, at) WHERE state = 'WAITING';
CREATE INDEX unstuck_deliveries_of ON unstuck_deliveries (webhook, id);
CREATE INDEX unstuck_deliveries_tenant ON unstuck_deliveries (tenant, id);
CREATE INDEX unstuck_deliveries_at ON unstuck_deliveries (at, id);
