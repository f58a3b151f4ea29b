DELETE FROM unstuck_timers WHERE kind = :kind AND due_at = :due_at AND job = :job
