-- The job that was let through got stuck again.
UPDATE unstuck_blacklist SET probe = NULL, renewed_at = unstuck_now() WHERE probe = :job AND removed_at IS NULL
