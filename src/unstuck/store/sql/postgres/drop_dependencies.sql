DELETE FROM unstuck_dependencies WHERE job = ANY (CAST(:jobs AS BIGINT[]))
