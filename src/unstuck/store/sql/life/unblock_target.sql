UPDATE unstuck_targets SET blocked_by = NULL, blocked_at = NULL WHERE id = :target AND blocked_by = :job
