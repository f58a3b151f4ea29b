-- What happens that is no job's move, and what programs publish. Each is an event of job 0 (unstuck_events), in the feed's one order; its row here says
-- what it is about, and until when it is kept. tenant NULL: the platform's. job: the id that people use.
CREATE TABLE unstuck_news (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT,
    queue      TEXT,
    workflow   TEXT,
    target     TEXT,
    topic      TEXT,
    worker     TEXT,
    job        TEXT,
    expires_at INTEGER NOT NULL
);
CREATE INDEX unstuck_news_expires ON unstuck_news (expires_at, number);
