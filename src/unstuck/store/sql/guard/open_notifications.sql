SELECT * FROM unstuck_notifications
 WHERE acked_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT)) AND id < :before
 ORDER BY id DESC
 LIMIT :most
