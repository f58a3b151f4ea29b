SELECT id FROM unstuck_targets WHERE id {in :targets BIGINT}
