-- There is one writer: nothing to lock.
SELECT 1 AS is_free FROM unstuck_workflows WHERE name = :name AND code_version = :code_version
