SELECT 1 AS found FROM unstuck_notifications
 WHERE acked_at IS NULL AND title = :title AND tenant = :tenant AND workflow = :workflow
 LIMIT 1
