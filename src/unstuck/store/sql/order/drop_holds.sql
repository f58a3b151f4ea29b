DELETE FROM unstuck_holds {matching :rows (job BIGINT, worker BIGINT)}
