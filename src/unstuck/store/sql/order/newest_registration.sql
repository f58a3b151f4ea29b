SELECT COALESCE(MAX(seen_at), 0) AS seen FROM unstuck_workflows
