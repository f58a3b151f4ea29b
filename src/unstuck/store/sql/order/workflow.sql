-- The newest that an active worker has: an old worker that starts late, or the last that ended, decides nothing.
SELECT *
  FROM unstuck_versions
 WHERE name = :name
 ORDER BY is_live DESC, registered_at DESC, seen_at DESC, code_version DESC
 LIMIT 1
