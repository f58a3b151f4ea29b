UPDATE unstuck_blacklist SET probe = :job WHERE id = :entry AND removed_at IS NULL AND probe IS NULL
