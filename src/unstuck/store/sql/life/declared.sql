-- What the code of apps declares, version by version.

-- name: declared_of
-- All versions of an app that are known, the one that decides first: the newest that an active worker has.
SELECT d.app, d.code_version, d.origin, d.body, d.registered_at, d.seen_at,
       EXISTS (SELECT 1 FROM unstuck_workers w
                WHERE w.ended_at IS NULL AND w.lease_until > unstuck_now() AND w.state = 'active' AND w.code_version = d.code_version
                  AND {json w.serves} ->> 'app' = d.app) AS is_live
  FROM unstuck_declared d
 WHERE d.app = :app
 ORDER BY is_live DESC, d.registered_at DESC, d.seen_at DESC, d.code_version DESC

-- name: declaring_apps
SELECT DISTINCT app FROM unstuck_declared ORDER BY app

-- name: declare
INSERT INTO unstuck_declared (app, code_version, origin, body, registered_at, seen_at)
VALUES (:app, :code_version, :origin, :body, unstuck_now(), unstuck_now())
ON CONFLICT (app, code_version) DO UPDATE SET origin = excluded.origin, body = excluded.body, seen_at = excluded.seen_at

-- name: schedules_of_app
SELECT s.*, unstuck_now() AS now, unstuck_ahead() AS ahead FROM unstuck_schedules s WHERE s.owner = :app ORDER BY s.id

-- name: forget_declared
-- Versions that no worker has had for so long; never the one that stands, or a live one.
DELETE FROM unstuck_declared
 WHERE seen_at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT)
   AND NOT EXISTS (SELECT 1 FROM unstuck_workers w WHERE w.ended_at IS NULL AND w.code_version = unstuck_declared.code_version)
   AND EXISTS (SELECT 1 FROM unstuck_declared later WHERE later.app = unstuck_declared.app AND later.seen_at > unstuck_declared.seen_at)
