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
