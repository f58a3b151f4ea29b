-- Locked if that needs no waiting. No row: there is none that could be held.
SELECT (SELECT 1 FROM (SELECT 1 FROM unstuck_workflows WHERE name = :name AND code_version = :code_version AND tenant = :tenant {lock FOR UPDATE SKIP LOCKED}) AS free) IS NOT NULL AS is_free
  FROM unstuck_workflows
 WHERE name = :name AND code_version = :code_version AND tenant = :tenant
