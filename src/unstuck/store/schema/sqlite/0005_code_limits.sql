-- The same as on PostgreSQL.
-- What the code says of a workflow's limit, kept beside what an operator has set in its place: it holds again once that is lifted.
ALTER TABLE unstuck_limits ADD COLUMN code_concurrency INTEGER;
ALTER TABLE unstuck_limits ADD COLUMN code_rate INTEGER;
ALTER TABLE unstuck_limits ADD COLUMN code_per_us INTEGER;

UPDATE unstuck_limits SET code_concurrency = concurrency, code_rate = rate, code_per_us = per_us WHERE set_by = 'code';
