SELECT id AS number, tenant, queue, workflow, limit_key FROM unstuck_routes WHERE id = ANY (CAST(:numbers AS BIGINT[])) ORDER BY id
