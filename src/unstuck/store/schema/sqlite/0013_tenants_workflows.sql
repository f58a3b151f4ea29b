-- A workflow's row says whose jobs go by it: '*' all tenants', else one tenant's, whose own worker registered it. Copied to and fro: SQLite changes
-- no primary key.
DROP VIEW IF EXISTS unstuck_versions;
CREATE TABLE unstuck_workflows_before AS SELECT * FROM unstuck_workflows;
DROP TABLE unstuck_workflows;
CREATE TABLE unstuck_workflows (
    name            TEXT NOT NULL,
    code_version    TEXT NOT NULL,
    queue           TEXT NOT NULL,
    policy          TEXT NOT NULL,
    schema          TEXT NOT NULL,
    target          TEXT,
    doc             TEXT,
    registered_at   INTEGER NOT NULL,
    seen_at         INTEGER NOT NULL,
    known_at        INTEGER,
    limit_key       TEXT,
    max_timeout     REAL,
    concurrency     INTEGER,
    rate            INTEGER,
    per_us          INTEGER,
    key_concurrency INTEGER,
    key_rate        INTEGER,
    key_per_us      INTEGER,
    redact          TEXT NOT NULL,
    tenant          TEXT NOT NULL DEFAULT '*',
    PRIMARY KEY (name, code_version, tenant)
);
INSERT INTO unstuck_workflows (name, code_version, queue, policy, schema, target, doc, registered_at, seen_at, known_at, limit_key, max_timeout,
                               concurrency, rate, per_us, key_concurrency, key_rate, key_per_us, redact)
SELECT name, code_version, queue, policy, schema, target, doc, registered_at, seen_at, known_at, limit_key, max_timeout,
       concurrency, rate, per_us, key_concurrency, key_rate, key_per_us, redact
  FROM unstuck_workflows_before;
DROP TABLE unstuck_workflows_before;
CREATE INDEX unstuck_workflows_seen ON unstuck_workflows (seen_at);

-- Of a policy that is open: whose jobs have it. NULL: of before this; all of them wait for a row of everybody's.
ALTER TABLE unstuck_policies ADD COLUMN tenant TEXT;
