-- What happens that is no job's move, and what programs publish. Each is an event of job 0 (unstuck_events), in the feed's one order; its row here says
-- what it is about. tenant NULL: the platform's; '*': every tenant's. job: the id that people use. by: who published it; NULL: unstuck tells it.
-- key: of what is published, so that it is told once however often it is sent. expires_at NULL: it is kept as long as the feed.
CREATE TABLE unstuck_news (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT,
    queue      TEXT,
    workflow   TEXT,
    target     TEXT,
    topic      TEXT,
    worker     TEXT,
    job        TEXT,
    by         TEXT,
    key        TEXT,
    told_at    INTEGER NOT NULL,
    expires_at INTEGER
);
CREATE UNIQUE INDEX unstuck_news_key ON unstuck_news (tenant, key) WHERE key IS NOT NULL;
-- Of which the newest of each tenant are kept.
CREATE INDEX unstuck_news_published ON unstuck_news (tenant, number) WHERE by IS NOT NULL;
CREATE INDEX unstuck_news_expires ON unstuck_news (expires_at, number) WHERE expires_at IS NOT NULL;
