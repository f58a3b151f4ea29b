INSERT INTO unstuck_pauses (kind, name, tenant, since_at, until_at, appointed, by, reason)
VALUES (:kind, :name, :tenant, unstuck_now(), COALESCE(CAST(:appointed AS BIGINT) + unstuck_ahead(), CAST(:until_at AS BIGINT)),
        CAST(:appointed AS BIGINT), :by, :reason)
ON CONFLICT (kind, name, tenant) DO UPDATE
   SET since_at = excluded.since_at, until_at = excluded.until_at, appointed = excluded.appointed, by = excluded.by, reason = excluded.reason
RETURNING kind, name, tenant, since_at, until_at, by, reason
