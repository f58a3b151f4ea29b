-- The newest that an active worker has: an old worker that starts late, or the last that ended, decides nothing. Of a tenant that has a live worker
-- of its own, what that says.
SELECT *
  FROM unstuck_versions
 WHERE name = :name AND tenant IN ('*', :tenant)
 ORDER BY is_live DESC, tenant = '*', registered_at DESC, seen_at DESC, code_version DESC
 LIMIT 1
