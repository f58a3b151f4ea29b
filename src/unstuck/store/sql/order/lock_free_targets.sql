-- Out of the order in which locks are taken, after jobs: so it waits for nobody.
SELECT id FROM unstuck_targets WHERE id {in :targets BIGINT} ORDER BY id {lock FOR NO KEY UPDATE SKIP LOCKED}
