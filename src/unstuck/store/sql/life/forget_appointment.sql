-- Somebody wanted it sooner: a release from a hold goes by it no more.
UPDATE unstuck_jobs SET appointed = NULL WHERE id = :job AND appointed IS NOT NULL
