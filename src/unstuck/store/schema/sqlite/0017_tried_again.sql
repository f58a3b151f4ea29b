-- An end whose job could not be stored for now, because a queue was full or somebody held a row, is tried again: ended is the job that ended, as its
-- follower is given it (JSON), again_at when; both NULL: it is done, one way or the other.
ALTER TABLE unstuck_ends_followed ADD COLUMN ended TEXT;
ALTER TABLE unstuck_ends_followed ADD COLUMN again_at BIGINT;
CREATE INDEX unstuck_ends_followed_again ON unstuck_ends_followed (again_at) WHERE again_at IS NOT NULL;

-- Deliveries that were sent, or could not even be, and of which nothing can be written into their own row: set aside here, so that they delay nothing
-- but what is about the same. again_at: when they are tried again; error: why.
CREATE TABLE unstuck_deliveries_aside (
    delivery BIGINT PRIMARY KEY,
    since_at BIGINT NOT NULL,
    again_at BIGINT NOT NULL,
    tries    BIGINT NOT NULL,
    error    TEXT NOT NULL
);
