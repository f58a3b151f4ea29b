SELECT EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target')
       OR (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS has_pauses,
       EXISTS (SELECT 1 FROM unstuck_limits WHERE concurrency IS NOT NULL OR rate IS NOT NULL) AS has_limits
