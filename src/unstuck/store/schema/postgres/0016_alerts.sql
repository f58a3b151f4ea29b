-- What is wrong, or was: one open row for each rule and cause, whoever looks. tenant '*': the platform's. subject: what it is about (a job, a worker, …).
-- count: how many things it stands for, where it is more than one. seen_at: when it was last found to be so; told_at: when the message was last written.
-- closed_at: it was over by then. notification: the one that tells of it. muted_until: nobody is told of it, nor of the next one of its cause.
CREATE TABLE unstuck_alerts (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule         TEXT COLLATE "C" NOT NULL,
    cause        TEXT COLLATE "C" NOT NULL,
    tenant       TEXT NOT NULL,
    workflow     TEXT NOT NULL,
    severity     TEXT NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    title        TEXT NOT NULL,
    subject      TEXT NOT NULL,
    message      TEXT NOT NULL,
    link         TEXT NOT NULL,
    count        BIGINT,
    opened_at    BIGINT NOT NULL,
    seen_at      BIGINT NOT NULL,
    told_at      BIGINT NOT NULL,
    closed_at    BIGINT,
    notification BIGINT,
    acked_at     BIGINT,
    acked_by     TEXT,
    muted_until  BIGINT,
    muted_by     TEXT
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX unstuck_alerts_open ON unstuck_alerts (rule, cause) WHERE closed_at IS NULL;
CREATE INDEX unstuck_alerts_cause ON unstuck_alerts (rule, cause, id);
CREATE INDEX unstuck_alerts_tenant ON unstuck_alerts (tenant, id);
CREATE INDEX unstuck_alerts_closed ON unstuck_alerts (closed_at, id) WHERE closed_at IS NOT NULL;

-- One row for each rule: whose turn it was last, so that of all workers and servers one looks at a time. place: how far its round has come; NULL: the next turn
-- begins one. began_at: when the round began; looked_at: when one was last done. failing_at: since when it fails; error: why.
CREATE TABLE unstuck_alert_rules (
    rule       TEXT PRIMARY KEY,
    turn_at    BIGINT NOT NULL DEFAULT 0,
    by         TEXT NOT NULL DEFAULT '',
    place      TEXT,
    began_at   BIGINT NOT NULL DEFAULT 0,
    looked_at  BIGINT,
    failing_at BIGINT,
    failures   BIGINT NOT NULL DEFAULT 0,
    error      TEXT
) WITH (fillfactor = 50);

-- That jobs were taken from a lost worker: a row for each worker, tenant and workflow of one rescue, for the alert about those that are lost again and again.
CREATE TABLE unstuck_recoveries (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       BIGINT NOT NULL,
    worker   BIGINT NOT NULL,
    name     TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    workflow TEXT NOT NULL,
    jobs     BIGINT NOT NULL
);
CREATE INDEX unstuck_recoveries_at ON unstuck_recoveries (at, id);
