-- What people ask of a worker itself: to recycle a process, to drain, to show a stack. The worker reads its own and answers.

-- subject: '' | a pid | 'JOB:TOKEN'. Answered once: done_at is set with the answer, and neither changes again.
CREATE TABLE unstuck_orders (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker     BIGINT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('recycle', 'drain', 'stack', 'kill')),
    subject    TEXT NOT NULL DEFAULT '',
    by         TEXT NOT NULL,
    given_at   BIGINT NOT NULL,
    done_at    BIGINT,
    answer     TEXT,
    is_refused INTEGER NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02);
-- All that a poll touches, and what makes a repeated order the same order while it is open.
CREATE UNIQUE INDEX unstuck_orders_open ON unstuck_orders (worker, kind, subject) WHERE done_at IS NULL;
CREATE INDEX unstuck_orders_given ON unstuck_orders (given_at);
