-- When a worker left, or was seen to be lost. Its row is kept for a while, and a crash loop leaves thousands: who asks for those that
-- live must not read the others. lease_until is in no index, so that a beat stays within its page.
ALTER TABLE unstuck_workers ADD COLUMN ended_at BIGINT;
UPDATE unstuck_workers SET ended_at = lease_until WHERE state IN ('lost', 'gone');
CREATE INDEX unstuck_workers_standing ON unstuck_workers (id) WHERE ended_at IS NULL;
CREATE INDEX unstuck_workers_ended ON unstuck_workers (ended_at, id) WHERE ended_at IS NOT NULL;
