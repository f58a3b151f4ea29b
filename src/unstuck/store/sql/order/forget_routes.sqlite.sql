-- After keep_routes: what is left of the same batch goes. Numbers are never used again (AUTOINCREMENT).
DELETE FROM unstuck_routes
 WHERE id IN (SELECT f.id FROM unstuck_routes f WHERE f.named_at < :before ORDER BY f.named_at, f.id LIMIT :batch OFFSET :past)
   AND named_at > 0
   AND NOT (COALESCE((SELECT j.route FROM unstuck_jobs j WHERE j.route >= unstuck_routes.id ORDER BY j.route LIMIT 1), -1) = unstuck_routes.id)
