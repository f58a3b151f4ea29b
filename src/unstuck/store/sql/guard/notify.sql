-- Once, for as long as nobody has taken note of it.
INSERT INTO unstuck_notifications (at, title, message, severity, link, tenant, workflow)
SELECT unstuck_now(), CAST(:title AS TEXT), CAST(:message AS TEXT), CAST(:severity AS TEXT), CAST(:link AS TEXT),
       CAST(:tenant AS TEXT), CAST(:workflow AS TEXT)
 WHERE NOT EXISTS (SELECT 1 FROM unstuck_notifications
                    WHERE acked_at IS NULL AND title = CAST(:title AS TEXT) AND link = CAST(:link AS TEXT)
                      AND tenant = CAST(:tenant AS TEXT) AND workflow = CAST(:workflow AS TEXT))
