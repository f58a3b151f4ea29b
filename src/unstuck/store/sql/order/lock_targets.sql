SELECT id FROM unstuck_targets WHERE id {in :targets BIGINT} ORDER BY id {lock FOR NO KEY UPDATE}
