-- A key's end is in its row: whoever forgets keys goes by it.
DROP INDEX unstuck_keys_created;
CREATE INDEX unstuck_keys_expires ON unstuck_keys (expires_at);
