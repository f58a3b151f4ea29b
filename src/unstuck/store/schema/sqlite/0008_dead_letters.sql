-- What did not run and what ran out of tries, until somebody has looked at it or its time is over. The job's own row has the payload, and
-- outlives its letter. reason: a code (model/dead_letters.py); message: the sentence. run: the run that ended so. signature: the envelope
-- that it had then.
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
    UNIQUE (job, run)
);
-- For lists, and for bulks, which walk along the jobs.
CREATE INDEX unstuck_dead_letters_tenant ON unstuck_dead_letters (tenant, id);
CREATE INDEX unstuck_dead_letters_jobs ON unstuck_dead_letters (tenant, job);
CREATE INDEX unstuck_dead_letters_age ON unstuck_dead_letters (created_at);
