-- News for whoever runs the platform.

-- name: add_notification
INSERT INTO unstuck_notifications (at, title, message, severity, link, tenant, workflow, count)
VALUES (unstuck_now(), :title, :message, :severity, :link, :tenant, :workflow, :count)
RETURNING id

-- name: notify
-- Once, for as long as nobody has taken note of it.
INSERT INTO unstuck_notifications (at, title, message, severity, link, tenant, workflow)
SELECT unstuck_now(), CAST(:title AS TEXT), CAST(:message AS TEXT), CAST(:severity AS TEXT), CAST(:link AS TEXT),
       CAST(:tenant AS TEXT), CAST(:workflow AS TEXT)
 WHERE NOT EXISTS (SELECT 1 FROM unstuck_notifications
                    WHERE acked_at IS NULL AND title = CAST(:title AS TEXT) AND link = CAST(:link AS TEXT)
                      AND tenant = CAST(:tenant AS TEXT) AND workflow = CAST(:workflow AS TEXT))
RETURNING id

-- name: notification
SELECT * FROM unstuck_notifications WHERE id = :number AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))

-- name: notifications
SELECT * FROM unstuck_notifications
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT)) AND id < :before
 ORDER BY id DESC
 LIMIT :most

-- name: open_notifications
SELECT * FROM unstuck_notifications
 WHERE acked_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT)) AND id < :before
 ORDER BY id DESC
 LIMIT :most

-- name: ack_notification
-- The first to take note is kept.
UPDATE unstuck_notifications
   SET acked_at = unstuck_now(), acked_by = :by
 WHERE id = :number AND acked_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
