-- Events that no wait has taken yet.

-- name: add_unclaimed_event
INSERT INTO unstuck_unclaimed_events (tenant, address, event, payload, run, by, sent_at, expires_at)
VALUES (:tenant, :address, :event, :payload, CAST(:run AS BIGINT), :by, unstuck_now(), unstuck_now() + CAST(:life AS BIGINT))
RETURNING id

-- name: known_event_id
SELECT fingerprint, job, number
  FROM unstuck_event_ids
 WHERE tenant = :tenant AND address = :address AND id = :id AND expires_at > (SELECT unstuck_now())

-- name: keep_event_id
-- The address is locked: who is in the way is one whose time is over.
INSERT INTO unstuck_event_ids (tenant, address, id, fingerprint, job, number, expires_at)
VALUES (:tenant, :address, :id, :fingerprint, :job, :number, unstuck_now() + CAST(:life AS BIGINT))
ON CONFLICT (tenant, address, id) DO UPDATE
   SET fingerprint = excluded.fingerprint, job = excluded.job, number = excluded.number, expires_at = excluded.expires_at

-- name: take_unclaimed_event
-- The address is locked, so nobody else takes an event from it; one that is being forgotten is passed by.
DELETE FROM unstuck_unclaimed_events
 WHERE id = (SELECT l.id
               FROM unstuck_unclaimed_events l
              WHERE l.tenant = :tenant AND l.address = :address AND l.event = :event
                AND (l.run IS NULL OR l.run = :run) AND l.expires_at > (SELECT unstuck_now())
              ORDER BY l.id
              LIMIT 1
                {lock FOR UPDATE SKIP LOCKED})
RETURNING payload, by, sent_at

-- name: drop_unclaimed_events
-- Sent to earlier runs: the next one must not take them for its own.
DELETE FROM unstuck_unclaimed_events WHERE tenant = :tenant AND address = :address AND run < :run
