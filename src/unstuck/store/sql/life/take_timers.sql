DELETE FROM unstuck_timers {matching :rows (due_at BIGINT, job BIGINT)} AND kind = :kind
RETURNING {returned job}
