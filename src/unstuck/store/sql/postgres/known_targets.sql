SELECT id FROM unstuck_targets WHERE id = ANY (CAST(:targets AS BIGINT[]))
