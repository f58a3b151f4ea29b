-- API keys, and the browser sessions that were begun with one.

-- name: add_api_key
INSERT INTO unstuck_api_keys (id, name, digest, tenant, role, scopes, queues, workflows, created_at, created_by, expires_at, rotated_from)
VALUES (:id, :name, :digest, :tenant, :role, :scopes, :queues, :workflows, unstuck_now(), :by, unstuck_now() + CAST(:lasting AS BIGINT), :rotated_from)
ON CONFLICT DO NOTHING

-- name: api_key
-- Of one tenant (NULL: whosever it is), and with this digest (NULL: whatever it is). One with another digest costs what one that is not there costs.
SELECT k.*, (SELECT later.id FROM unstuck_api_keys later WHERE later.rotated_from = k.id) AS rotated_to, unstuck_now() AS now
  FROM unstuck_api_keys k
 WHERE k.id = :id
   AND (CAST(:tenant AS TEXT) IS NULL OR k.tenant = CAST(:tenant AS TEXT))
   AND (CAST(:digest AS TEXT) IS NULL OR k.digest = CAST(:digest AS TEXT))

-- name: api_keys
-- The newest first; with :ended also those that have.
SELECT k.*, (SELECT later.id FROM unstuck_api_keys later WHERE later.rotated_from = k.id) AS rotated_to, unstuck_now() AS now
  FROM unstuck_api_keys k
 WHERE (CAST(:tenant AS TEXT) IS NULL OR k.tenant = CAST(:tenant AS TEXT))
   AND k.number < :before
   AND (:ended = 1 OR (k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > unstuck_now())))
 ORDER BY k.number DESC
 LIMIT :most

-- name: api_keys_of
SELECT k.*, NULL AS rotated_to, unstuck_now() AS now FROM unstuck_api_keys k WHERE k.id {in :ids TEXT}

-- name: has_api_keys
-- Whether there ever was one, and be it that all have ended.
SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM unstuck_api_keys)

-- name: revoke_api_key
UPDATE unstuck_api_keys SET revoked_at = unstuck_now(), revoked_by = :by WHERE id = :id AND revoked_at IS NULL

-- name: lock_api_key
-- So that it is not revoked, nor rotated by somebody else, meanwhile.
SELECT id FROM unstuck_api_keys WHERE id = :id {lock FOR UPDATE}

-- name: end_api_key_within
-- It works for so long at most; one that ends before stays as it is.
UPDATE unstuck_api_keys
   SET expires_at = unstuck_now() + CAST(:overlap AS BIGINT)
 WHERE id = :id AND (expires_at IS NULL OR expires_at > unstuck_now() + CAST(:overlap AS BIGINT))

-- name: note_api_key_uses
-- Once in :every at most; one that somebody else writes at this moment is left to them.
UPDATE unstuck_api_keys
   SET last_used_at = unstuck_now()
 WHERE number {among}
       SELECT number FROM unstuck_api_keys
        WHERE id {in :ids TEXT} AND (last_used_at IS NULL OR last_used_at <= unstuck_now() - CAST(:every AS BIGINT))
          {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: add_browser_session
INSERT INTO unstuck_browser_sessions (digest, key, address, created_at, idle_us, idle_until, ends_at)
VALUES (:digest, :key, :address, unstuck_now(), :idle, unstuck_now() + CAST(:idle AS BIGINT), unstuck_now() + CAST(:lasting AS BIGINT))
RETURNING number

-- name: browser_session
-- One that has not ended, with its key, if that has not.
SELECT k.*, (SELECT later.id FROM unstuck_api_keys later WHERE later.rotated_from = k.id) AS rotated_to,
       s.number AS session, s.address, s.created_at AS began_at, s.idle_until, s.ends_at, unstuck_now() AS now
  FROM unstuck_browser_sessions s
  JOIN unstuck_api_keys k ON k.id = s.key
 WHERE s.digest = :digest AND s.idle_until > unstuck_now() AND s.ends_at > unstuck_now()
   AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > unstuck_now())

-- name: browser_sessions
-- Of the keys of one tenant (NULL: of all keys), those that have not ended, the newest first.
SELECT k.*, (SELECT later.id FROM unstuck_api_keys later WHERE later.rotated_from = k.id) AS rotated_to,
       s.number AS session, s.address, s.created_at AS began_at, s.idle_until, s.ends_at, unstuck_now() AS now
  FROM unstuck_browser_sessions s
  JOIN unstuck_api_keys k ON k.id = s.key
 WHERE s.number < :before AND s.number >= :least AND s.idle_until > unstuck_now() AND s.ends_at > unstuck_now()
   AND (CAST(:tenant AS TEXT) IS NULL OR k.tenant = CAST(:tenant AS TEXT))
   AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > unstuck_now())
 ORDER BY s.number DESC
 LIMIT :most

-- name: touch_browser_sessions
-- What ended is not revived; one that somebody else writes at this moment is left to them.
UPDATE unstuck_browser_sessions
   SET idle_until = unstuck_now() + idle_us
 WHERE number {among}
       SELECT number FROM unstuck_browser_sessions
        WHERE digest {in :digests TEXT} AND idle_until > unstuck_now() AND ends_at > unstuck_now()
          {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: end_browser_session
-- By its number, or by what is stored of it.
DELETE FROM unstuck_browser_sessions
 WHERE number = CAST(:number AS BIGINT) OR digest = CAST(:digest AS TEXT)
RETURNING number, key

-- name: end_browser_sessions_of_key
DELETE FROM unstuck_browser_sessions WHERE key = :key

-- name: forget_browser_sessions
-- Those that ended, whoever began another.
DELETE FROM unstuck_browser_sessions
 WHERE number {among}
       SELECT number FROM unstuck_browser_sessions WHERE idle_until <= unstuck_now() ORDER BY idle_until LIMIT :batch
          {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: forget_old_browser_sessions
-- Of one key, all but the newest.
DELETE FROM unstuck_browser_sessions
 WHERE key = :key AND number <= (SELECT number FROM unstuck_browser_sessions WHERE key = :key ORDER BY number DESC LIMIT 1 OFFSET :kept)
