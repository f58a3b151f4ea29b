INSERT INTO unstuck_unclaimed_events (tenant, address, event, payload, run, by, sent_at, expires_at)
VALUES (:tenant, :address, :event, :payload, CAST(:run AS BIGINT), :by, unstuck_now(), unstuck_now() + CAST(:life AS BIGINT))
RETURNING id
