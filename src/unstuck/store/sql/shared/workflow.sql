SELECT * FROM unstuck_workflows WHERE name = :name ORDER BY seen_at DESC, registered_at DESC, code_version DESC LIMIT 1
