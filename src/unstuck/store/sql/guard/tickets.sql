-- One-time tickets for streams.

-- name: add_ticket
INSERT INTO unstuck_tickets (digest, key, ends_at) VALUES (:digest, :key, unstuck_now() + CAST(:lasting AS BIGINT))
RETURNING ends_at

-- name: ticket
-- Whether there is one to use: a stranger's guess must not begin a write.
SELECT 1 AS found FROM unstuck_tickets WHERE digest = :digest AND ends_at > unstuck_now()

-- name: use_ticket
-- Of two who use it at once, one gets it.
DELETE FROM unstuck_tickets WHERE digest = :digest AND ends_at > unstuck_now()
RETURNING key

-- name: forget_tickets
-- Those that nobody used in time.
DELETE FROM unstuck_tickets
 WHERE digest {among}
       SELECT digest FROM unstuck_tickets WHERE ends_at <= unstuck_now() ORDER BY ends_at LIMIT :batch
          {lock FOR UPDATE SKIP LOCKED}
       {end}
