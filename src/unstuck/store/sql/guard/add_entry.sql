INSERT INTO unstuck_blacklist (tenant, workflow, reason, blacklisted_at, blacklisted_by, stuck_count)
VALUES (:tenant, :workflow, :reason, unstuck_now(), :by, :stuck_count)
ON CONFLICT (workflow, tenant) WHERE removed_at IS NULL DO NOTHING
RETURNING *
