SELECT (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS has_entries,
       EXISTS (SELECT 1 FROM unstuck_blacklist_held) AS has_held
