-- What jobs call.

-- name: calls_of_jobs
-- And whose they are, of all tenants: an id is one job's.
SELECT uid, tenant, workflow, payload FROM unstuck_jobs WHERE uid {in :uids TEXT}

-- name: calls_by_number
SELECT id, workflow, payload FROM unstuck_jobs WHERE id {in :jobs BIGINT}
