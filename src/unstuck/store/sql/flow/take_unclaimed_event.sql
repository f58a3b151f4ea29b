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
