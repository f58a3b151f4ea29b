SELECT id AS number, tenant, queue, workflow, limit_key FROM unstuck_routes WHERE id {in :numbers BIGINT} ORDER BY id
