-- One route at a time: only then does SQLite look for it inside the view's branches.
SELECT route FROM unstuck_gates WHERE route = :route AND probe IS NULL LIMIT 1
