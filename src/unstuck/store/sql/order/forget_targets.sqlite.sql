-- After keep_targets: what is left of the same batch goes. Numbers are never used again (AUTOINCREMENT).
DELETE FROM unstuck_targets
 WHERE id IN (SELECT f.id FROM unstuck_targets f WHERE f.named_at < :before ORDER BY f.named_at, f.id LIMIT :batch OFFSET :past)
   AND named_at > 0
   AND NOT (unstuck_targets.head IS NOT NULL
           OR COALESCE((SELECT j.target FROM unstuck_jobs j WHERE j.target >= unstuck_targets.id ORDER BY j.target LIMIT 1), -1) = unstuck_targets.id
           OR EXISTS (SELECT 1 FROM unstuck_pauses p WHERE p.kind = 'target' AND p.name = unstuck_targets.name AND p.tenant = unstuck_targets.tenant))
