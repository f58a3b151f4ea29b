-- Kept from being removed until this transaction ends.
SELECT * FROM unstuck_blacklist WHERE id = ANY (CAST(:entries AS BIGINT[])) AND removed_at IS NULL ORDER BY id FOR SHARE
