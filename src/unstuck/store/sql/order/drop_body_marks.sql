DELETE FROM unstuck_body_marks {matching :rows (job BIGINT, worker BIGINT)}
