-- Whose they are and what they call, of all tenants: an id is one job's.
SELECT uid, tenant, workflow, payload FROM unstuck_jobs WHERE uid {in :uids TEXT}
