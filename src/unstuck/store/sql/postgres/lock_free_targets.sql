-- Out of the order in which locks are taken, after jobs: so it waits for nobody.
SELECT id FROM unstuck_targets WHERE id = ANY (CAST(:targets AS BIGINT[])) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
