-- signature: the envelope of a signed job as model/signing.py writes it, NULL of one that nobody signed. signed_until: when the signature
-- expires: the row is kept at least until then, so that whoever sends it again is told of the job that it made.
ALTER TABLE unstuck_jobs ADD COLUMN signature TEXT;
ALTER TABLE unstuck_jobs ADD COLUMN signed_until BIGINT;

-- Signing keys that must not start anything any more. The keys themselves are in no database.
CREATE TABLE unstuck_revoked_signers (
    key        TEXT NOT NULL PRIMARY KEY,
    revoked_at BIGINT NOT NULL,
    revoked_by TEXT NOT NULL,
    reason     TEXT
);
