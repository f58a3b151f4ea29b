-- Webhooks: where events are sent, who sends, and what people ask.

-- name: webhooks
-- Of :name alone, or all behind :after; each with how many deliveries wait, up to :ceiling, and since when: by the index of those, whatever the statistics say.
SELECT w.*, unstuck_now() AS now,
       (SELECT COUNT(*) FROM (SELECT 1 AS one FROM unstuck_deliveries d WHERE {exactly d.webhook w.id} AND d.state = 'WAITING' ORDER BY d.webhook, d.at LIMIT :ceiling) AS few) AS waiting,
       (SELECT d.at FROM unstuck_deliveries d WHERE {exactly d.webhook w.id} AND d.state = 'WAITING' ORDER BY d.webhook, d.at LIMIT 1) AS waiting_since
  FROM unstuck_webhooks w
 WHERE (CAST(:tenant AS TEXT) IS NULL OR w.tenant = CAST(:tenant AS TEXT)) AND (CAST(:name AS TEXT) IS NULL OR w.name = CAST(:name AS TEXT))
   AND w.id > :after AND w.tenant <> ''
 ORDER BY w.id
 LIMIT :most

-- name: lock_webhook
SELECT w.*, unstuck_now() AS now FROM unstuck_webhooks w WHERE w.tenant = :tenant AND w.name = :name {lock FOR UPDATE}

-- name: lock_leased_webhook
-- None, if another sender has it by now, or it is gone.
SELECT w.*, unstuck_now() AS now FROM unstuck_webhooks w WHERE w.id = :webhook AND w.lease = :lease {lock FOR UPDATE}

-- name: count_webhooks
SELECT COUNT(*) AS webhooks FROM unstuck_webhooks WHERE tenant = :tenant

-- name: add_webhook
INSERT INTO unstuck_webhooks (tenant, name, url, filter, secret, state_at, state_by, created_at, created_by, changed_at, changed_by, position, reached, since_at)
SELECT :tenant, :name, :url, :filter, :secret, now.at, :by, now.at, :by, now.at, :by, :position, :position, now.at
  FROM (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
ON CONFLICT (tenant, name) DO NOTHING
RETURNING id

-- name: change_webhook
UPDATE unstuck_webhooks
   SET url = :url, filter = :filter, version = version + 1, changed_at = unstuck_now(), changed_by = :by, rest_until = 0
 WHERE id = :webhook

-- name: rotate_webhook
UPDATE unstuck_webhooks
   SET old_secret = CASE WHEN :overlap > 0 THEN secret END, old_secret_until = CASE WHEN :overlap > 0 THEN unstuck_now() + CAST(:overlap AS BIGINT) END,
       secret = :secret, version = version + 1, changed_at = unstuck_now(), changed_by = :by
 WHERE id = :webhook

-- name: webhook_secrets
-- Those that sign: the one before only until its time is over.
SELECT id, tenant, name, secret, CASE WHEN old_secret_until > unstuck_now() THEN old_secret END AS old_secret
  FROM unstuck_webhooks
 WHERE id > :after AND tenant <> ''
 ORDER BY id
 LIMIT :most

-- name: reseal_webhook
-- If it is stored as it was read. What it is stays, and so does the version.
UPDATE unstuck_webhooks
   SET secret = CASE WHEN secret = :was THEN :now ELSE secret END, old_secret = CASE WHEN old_secret = :was THEN :now ELSE old_secret END
 WHERE id = :webhook AND (secret = :was OR old_secret = :was)

-- name: state_webhook
-- Disabled, the feed waits for it no more. Active again after that, it goes on with what happens from now on; and whatever it was, it is tried at once.
UPDATE unstuck_webhooks
   SET state = :state, state_at = unstuck_now(), state_by = :by, state_reason = CAST(:reason AS TEXT), version = version + 1,
       since_at = CASE WHEN position IS NULL THEN unstuck_now() ELSE since_at END,
       position = CASE WHEN :state = 'DISABLED' THEN NULL ELSE COALESCE(position, CAST(:position AS BIGINT)) END,
       reached = {greatest}(reached, CAST(:position AS BIGINT)),
       failures = 0, failing_since = NULL, rest_until = 0,
       due_at = (SELECT d.due_at FROM unstuck_deliveries d WHERE {exactly d.webhook unstuck_webhooks.id} AND d.due_at IS NOT NULL
                  ORDER BY d.webhook, d.due_at LIMIT 1)
 WHERE id = :webhook

-- name: replay_webhook
UPDATE unstuck_webhooks SET position = :position, since_at = :since, version = version + 1, rest_until = 0 WHERE id = :webhook

-- name: delete_webhook
-- Nobody's any more, it stays until its deliveries have gone, by and by.
UPDATE unstuck_webhooks
   SET tenant = '', name = CAST(id AS TEXT), state = 'DISABLED', secret = '', old_secret = NULL, url = '', position = NULL, due_at = NULL, lease = NULL, failures = 0
 WHERE id = :webhook

-- name: forget_webhooks
-- But for those that somebody holds.
DELETE FROM unstuck_webhooks
 WHERE id {among}
       SELECT w.id FROM unstuck_webhooks w
        WHERE w.tenant = '' AND NOT EXISTS (SELECT 1 FROM unstuck_deliveries d WHERE d.webhook = w.id)
          {lock FOR UPDATE OF w SKIP LOCKED}
       {end}

-- name: wake_webhook
UPDATE unstuck_webhooks
   SET due_at = CASE WHEN due_at < unstuck_now() THEN due_at ELSE unstuck_now() END
 WHERE id {in :webhooks BIGINT}

-- name: copying
-- How many the feed is copied out for, and how far behind the last of them is.
SELECT COUNT(*) AS webhooks, MIN(position) AS position FROM unstuck_webhooks WHERE position IS NOT NULL

-- name: lock_copied_webhooks
-- One whose row somebody holds is left where it is, and caught up with later.
SELECT w.*, (SELECT COUNT(*) FROM (SELECT 1 AS one FROM unstuck_deliveries d WHERE {exactly d.webhook w.id} AND d.state = 'WAITING' ORDER BY d.webhook, d.at LIMIT :ceiling) AS few) AS waiting
  FROM unstuck_webhooks w
 WHERE w.position < CAST(:position AS BIGINT)
   AND NOT w.id {in :spared BIGINT} AND (CAST(:only AS BIGINT) IS NULL OR w.id = CAST(:only AS BIGINT))
 ORDER BY w.position, w.id
 LIMIT :most
 {lock FOR UPDATE OF w SKIP LOCKED}

-- name: behind_webhooks
SELECT id, tenant, name FROM unstuck_webhooks
 WHERE position < CAST(:position AS BIGINT) AND NOT id {in :spared BIGINT}
 ORDER BY position, id
 LIMIT :most

-- name: move_webhooks
UPDATE unstuck_webhooks SET position = :position, reached = {greatest}(reached, CAST(:position AS BIGINT)) WHERE id {in :webhooks BIGINT}

-- name: next_webhook
SELECT MIN({greatest}(due_at, rest_until, leased_until)) AS due_at, unstuck_now() AS now
  FROM unstuck_webhooks
 WHERE state = 'ACTIVE' AND due_at IS NOT NULL

-- name: lease_webhooks
-- By turns: one with much to send does not keep others from theirs. :doubtful: only those whose last try failed (1), or was taken (0).
UPDATE unstuck_webhooks
   SET lease = :lease, leased_until = unstuck_now() + CAST(:lasting AS BIGINT), turn_at = unstuck_now()
 WHERE id {among}
       SELECT id FROM unstuck_webhooks
        WHERE state = 'ACTIVE' AND due_at <= (SELECT unstuck_now()) AND rest_until <= (SELECT unstuck_now()) AND leased_until <= (SELECT unstuck_now())
          AND NOT id {in :spared BIGINT} AND (CAST(:only AS BIGINT) IS NULL OR id = CAST(:only AS BIGINT))
          AND (CAST(:doubtful AS INTEGER) IS NULL OR CASE WHEN failures > 0 THEN 1 ELSE 0 END = CAST(:doubtful AS INTEGER))
        ORDER BY turn_at, id
        LIMIT :most
          {lock FOR UPDATE SKIP LOCKED}
       {end}
RETURNING id

-- name: leasable_webhooks
-- Whom a lease would take.
SELECT id, tenant, name FROM unstuck_webhooks
 WHERE state = 'ACTIVE' AND due_at <= (SELECT unstuck_now()) AND rest_until <= (SELECT unstuck_now()) AND leased_until <= (SELECT unstuck_now())
   AND NOT id {in :spared BIGINT}
   AND (CAST(:doubtful AS INTEGER) IS NULL OR CASE WHEN failures > 0 THEN 1 ELSE 0 END = CAST(:doubtful AS INTEGER))
 ORDER BY turn_at, id
 LIMIT :most

-- name: settle_webhook
UPDATE unstuck_webhooks
   SET failures = :failures, failing_since = CAST(:failing_since AS BIGINT), rest_until = :rest_until, last_status = CAST(:status AS BIGINT),
       last_error = CAST(:error AS TEXT), tried_at = unstuck_now(), taken_at = CASE WHEN :taken = 1 THEN unstuck_now() ELSE taken_at END,
       leased_until = unstuck_now() + CAST(:lasting AS BIGINT)
 WHERE id = :webhook

-- name: rest_webhook
UPDATE unstuck_webhooks SET rest_until = {greatest}(rest_until, unstuck_now() + CAST(:lasting AS BIGINT)) WHERE id = :webhook

-- name: release_webhook
UPDATE unstuck_webhooks
   SET lease = NULL, leased_until = 0,
       due_at = (SELECT d.due_at FROM unstuck_deliveries d WHERE {exactly d.webhook unstuck_webhooks.id} AND d.due_at IS NOT NULL
                  ORDER BY d.webhook, d.due_at LIMIT 1)
 WHERE id = :webhook AND lease = :lease

-- name: failing_webhooks
-- Those that took nothing for so long, and those that failure disabled; the longest first.
SELECT w.*, unstuck_now() AS now, 0 AS waiting, CAST(NULL AS BIGINT) AS waiting_since
  FROM unstuck_webhooks w
 WHERE (CAST(:tenant AS TEXT) IS NULL OR w.tenant = CAST(:tenant AS TEXT))
   AND w.tenant <> ''
   AND (w.failures > 0 OR (w.state = 'DISABLED' AND w.state_by = :engine))
 ORDER BY w.failing_since, w.id
 LIMIT :most
