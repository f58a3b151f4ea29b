SELECT id AS number, tenant, queue, workflow FROM unstuck_routes WHERE id > :after ORDER BY id
