DELETE FROM unstuck_ready {matching :rows (route BIGINT, rank BIGINT, job BIGINT)}
RETURNING {returned job}
