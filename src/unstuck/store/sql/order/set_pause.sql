INSERT INTO unstuck_pauses (kind, name, tenant, since_at, until_at, by, reason)
VALUES (:kind, :name, :tenant, unstuck_now(), :until_at, :by, :reason)
ON CONFLICT (kind, name, tenant) DO UPDATE
   SET since_at = excluded.since_at, until_at = excluded.until_at, by = excluded.by, reason = excluded.reason
RETURNING kind, name, tenant, since_at, until_at, by, reason
