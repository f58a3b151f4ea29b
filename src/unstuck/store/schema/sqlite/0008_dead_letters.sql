-- What did not run and what ran out of tries, until somebody looks at it or a day is over. The job's own row has payload and signature;
-- it outlives its letter. reason: a code (model/dead_letters.py); message: the sentence. run: the run that ended so.
CREATE TABLE unstuck_dead_letters (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job        INTEGER NOT NULL,
    run        INTEGER NOT NULL,
    tenant     TEXT NOT NULL,
    queue      TEXT NOT NULL,
    workflow   TEXT NOT NULL,
    reason     TEXT NOT NULL,
    message    TEXT NOT NULL,
    signature  TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    UNIQUE (job, run)
);
CREATE INDEX unstuck_dead_letters_tenant ON unstuck_dead_letters (tenant, id);
CREATE INDEX unstuck_dead_letters_expiry ON unstuck_dead_letters (expires_at);
