-- Deliveries: what is sent to each webhook, in the order of what they are about.

-- name: known_deliveries
SELECT id, message, state FROM unstuck_deliveries WHERE message {in :messages TEXT}

-- name: add_deliveries
INSERT INTO unstuck_deliveries (webhook, tenant, message, place, about, kind, job, happened_at, body, at)
SELECT r.webhook, r.tenant, r.message, r.place, r.about, r.kind, r.job, r.happened_at, r.body, unstuck_now()
  FROM {rows :rows AS r (webhook BIGINT, tenant TEXT, message TEXT, place BIGINT, about TEXT, kind TEXT, job TEXT, happened_at BIGINT, body TEXT)}
 WHERE TRUE
 ORDER BY r.place
ON CONFLICT (message) DO NOTHING

-- name: add_test_delivery
INSERT INTO unstuck_deliveries (webhook, tenant, message, place, about, kind, happened_at, body, at, due_at)
SELECT :webhook, :tenant, :message, 0, :message, :kind, now.at, :body, now.at, now.at FROM (SELECT unstuck_now() AS at) AS now
RETURNING id

-- name: reopen_deliveries
UPDATE unstuck_deliveries
   SET state = 'WAITING', at = unstuck_now(), due_at = NULL, tries = 0, tried_since = NULL, ended_at = NULL
 WHERE id {in :deliveries BIGINT} AND state <> 'WAITING'

-- name: old_deliveries
-- Of what is replayed, what the feed has no more; by their places.
SELECT d.id, d.about
  FROM unstuck_deliveries d
 WHERE d.webhook = :webhook AND d.state <> 'WAITING' AND d.place > 0 AND d.place <= :floor AND d.happened_at >= :since
 ORDER BY d.place, d.id
 LIMIT :most

-- name: unseat_deliveries
-- Those that have to wait again, because an earlier one about the same came.
UPDATE unstuck_deliveries
   SET due_at = NULL
 WHERE webhook = :webhook AND due_at IS NOT NULL AND about {in :abouts TEXT}
   AND EXISTS (SELECT 1 FROM unstuck_deliveries e
                WHERE e.webhook = unstuck_deliveries.webhook AND e.about = unstuck_deliveries.about AND e.state = 'WAITING'
                  AND (e.place, e.id) < (unstuck_deliveries.place, unstuck_deliveries.id))

-- name: seat_deliveries
-- The first of what is about each of these is due, unless it waits for its next try. By the index of those, whatever the statistics say.
UPDATE unstuck_deliveries
   SET due_at = unstuck_now()
 WHERE id {among}
       SELECT (SELECT d.id FROM unstuck_deliveries d
                WHERE {exactly d.webhook :webhook} AND {exactly d.about a.about} AND d.state = 'WAITING'
                ORDER BY d.webhook, d.about, d.place, d.id LIMIT 1)
         FROM {list :abouts AS a (about TEXT)}
       {end}
   AND due_at IS NULL

-- name: revive_deliveries
-- Their days begin anew, and those that were to be tried later are due.
UPDATE unstuck_deliveries
   SET tries = 0, tried_since = NULL, due_at = CASE WHEN due_at > unstuck_now() THEN unstuck_now() ELSE due_at END
 WHERE webhook = :webhook AND state = 'WAITING' AND tries > 0

-- name: due_delivery
-- One whose row somebody holds is passed by, and one that is set aside until it is tried again.
SELECT d.*, CASE WHEN EXISTS (SELECT 1 FROM unstuck_deliveries_aside a WHERE a.delivery = d.id) THEN 1 ELSE 0 END AS is_aside
  FROM unstuck_deliveries d
 WHERE {exactly d.webhook :webhook} AND d.due_at <= (SELECT unstuck_now())
   AND NOT EXISTS (SELECT 1 FROM unstuck_deliveries_aside a WHERE a.delivery = d.id AND a.again_at > (SELECT unstuck_now()))
 ORDER BY d.webhook, d.due_at, d.id
 LIMIT 1
 {lock FOR UPDATE OF d SKIP LOCKED}

-- name: set_delivery_aside
-- Until as long from now as it has been there, within bounds.
INSERT INTO unstuck_deliveries_aside AS s (delivery, since_at, again_at, tries, error)
VALUES (:delivery, unstuck_now(), unstuck_now() + CAST(:soonest AS BIGINT), 1, :error)
ON CONFLICT (delivery) DO UPDATE
   SET tries = s.tries + 1, error = excluded.error,
       again_at = unstuck_now() + CASE WHEN unstuck_now() - s.since_at < CAST(:soonest AS BIGINT) THEN CAST(:soonest AS BIGINT)
                                       WHEN unstuck_now() - s.since_at > CAST(:latest AS BIGINT) THEN CAST(:latest AS BIGINT)
                                       ELSE unstuck_now() - s.since_at END

-- name: drop_delivery_aside
DELETE FROM unstuck_deliveries_aside WHERE delivery = :delivery

-- name: forget_deliveries_aside
DELETE FROM unstuck_deliveries_aside
 WHERE delivery {among}
       SELECT a.delivery FROM unstuck_deliveries_aside a
        WHERE NOT EXISTS (SELECT 1 FROM unstuck_deliveries d WHERE d.id = a.delivery AND d.state = 'WAITING')
        LIMIT :batch
          {lock FOR UPDATE OF a SKIP LOCKED}
       {end}

-- name: next_delivery
SELECT due_at, unstuck_now() AS now FROM unstuck_deliveries
 WHERE {exactly webhook :webhook} AND due_at IS NOT NULL ORDER BY webhook, due_at LIMIT 1

-- name: lock_delivery
SELECT d.* FROM unstuck_deliveries d WHERE d.id = :delivery AND d.state = 'WAITING' {lock FOR UPDATE}

-- name: settle_delivery
UPDATE unstuck_deliveries
   SET state = :state, due_at = CAST(:due_at AS BIGINT), tries = :tries, tried_since = :tried_since,
       ended_at = CASE WHEN :state = 'WAITING' THEN NULL ELSE unstuck_now() END,
       last_status = CAST(:status AS BIGINT), last_error = CAST(:error AS TEXT), attempts = :attempts
 WHERE id = :delivery

-- name: delivery
SELECT d.*, w.name AS name, w.state AS webhook_state, w.rest_until, a.again_at, a.error AS aside, unstuck_now() AS now
  FROM unstuck_deliveries d
  JOIN unstuck_webhooks w ON w.id = d.webhook AND w.tenant <> ''
  LEFT JOIN unstuck_deliveries_aside a ON a.delivery = d.id
 WHERE d.id = :delivery AND (CAST(:tenant AS TEXT) IS NULL OR d.tenant = CAST(:tenant AS TEXT))

-- name: deliveries
-- The newest first, without what makes them large.
SELECT d.id, d.webhook, d.tenant, d.message, d.kind, d.job, d.state, d.happened_at, d.at, d.due_at, d.tries, d.ended_at, d.last_status, d.last_error,
       '' AS body, '[]' AS attempts, w.name AS name, w.state AS webhook_state, w.rest_until, a.again_at, a.error AS aside, unstuck_now() AS now
  FROM unstuck_deliveries d
  JOIN unstuck_webhooks w ON w.id = d.webhook AND w.tenant <> ''
  LEFT JOIN unstuck_deliveries_aside a ON a.delivery = d.id
 WHERE d.id < :before
   AND (CAST(:state AS TEXT) IS NULL OR d.state = CAST(:state AS TEXT))
   AND (CAST(:job AS TEXT) IS NULL OR d.job = CAST(:job AS TEXT))
 ORDER BY d.id DESC
 LIMIT :most

-- name: deliveries_of_tenant
SELECT d.id, d.webhook, d.tenant, d.message, d.kind, d.job, d.state, d.happened_at, d.at, d.due_at, d.tries, d.ended_at, d.last_status, d.last_error,
       '' AS body, '[]' AS attempts, w.name AS name, w.state AS webhook_state, w.rest_until, a.again_at, a.error AS aside, unstuck_now() AS now
  FROM unstuck_deliveries d
  JOIN unstuck_webhooks w ON w.id = d.webhook AND w.tenant <> ''
  LEFT JOIN unstuck_deliveries_aside a ON a.delivery = d.id
 WHERE {exactly d.tenant :tenant} AND d.id < :before
   AND (CAST(:state AS TEXT) IS NULL OR d.state = CAST(:state AS TEXT))
   AND (CAST(:job AS TEXT) IS NULL OR d.job = CAST(:job AS TEXT))
 ORDER BY d.tenant DESC, d.id DESC
 LIMIT :most

-- name: deliveries_of_webhook
SELECT d.id, d.webhook, d.tenant, d.message, d.kind, d.job, d.state, d.happened_at, d.at, d.due_at, d.tries, d.ended_at, d.last_status, d.last_error,
       '' AS body, '[]' AS attempts, w.name AS name, w.state AS webhook_state, w.rest_until, a.again_at, a.error AS aside, unstuck_now() AS now
  FROM unstuck_deliveries d
  JOIN unstuck_webhooks w ON w.id = d.webhook AND w.tenant <> ''
  LEFT JOIN unstuck_deliveries_aside a ON a.delivery = d.id
 WHERE {exactly d.webhook :webhook} AND d.id < :before
   AND (CAST(:state AS TEXT) IS NULL OR d.state = CAST(:state AS TEXT))
   AND (CAST(:job AS TEXT) IS NULL OR d.job = CAST(:job AS TEXT))
 ORDER BY d.webhook DESC, d.id DESC
 LIMIT :most

-- name: forgettable_deliveries
-- The oldest whose time is over.
SELECT d.id, d.webhook, d.about, d.state
  FROM unstuck_deliveries d
 WHERE d.at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT)
 ORDER BY d.at, d.id
 LIMIT :batch OFFSET :past

-- name: ownerless_deliveries
SELECT d.id, d.webhook, d.about, d.state
  FROM unstuck_webhooks w
  JOIN unstuck_deliveries d ON d.webhook = w.id
 WHERE w.tenant = ''
 ORDER BY d.id
 LIMIT :batch OFFSET :past

-- name: lock_free_webhooks
SELECT id FROM unstuck_webhooks WHERE id {in :webhooks BIGINT} ORDER BY id {lock FOR UPDATE SKIP LOCKED}

-- name: forget_deliveries
DELETE FROM unstuck_deliveries
 WHERE id {among} SELECT id FROM unstuck_deliveries WHERE id {in :deliveries BIGINT} {lock FOR UPDATE SKIP LOCKED} {end}
