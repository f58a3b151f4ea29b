-- Kept from being removed until this transaction ends.
SELECT * FROM unstuck_blacklist WHERE id {in :entries BIGINT} AND removed_at IS NULL ORDER BY id {lock FOR SHARE}
