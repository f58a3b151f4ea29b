UPDATE unstuck_blacklist SET probe = NULL WHERE id = :entry AND probe = :job AND removed_at IS NULL
