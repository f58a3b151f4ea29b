-- Somebody means to use these: for a day and the life of a cache nobody may forget them.
UPDATE unstuck_targets SET named_at = unstuck_now() WHERE id {in :numbers BIGINT}
