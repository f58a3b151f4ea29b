SELECT body, workflow IS NOT NULL AS is_open FROM unstuck_policies WHERE id = :policy
