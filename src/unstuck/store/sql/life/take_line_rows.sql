DELETE FROM unstuck_line {matching :rows (target BIGINT, place BIGINT, job BIGINT)}
RETURNING {returned job}
