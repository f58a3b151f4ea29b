-- Of the oldest those that a job still names, or that nobody has given a time yet: looked at again after as long.
UPDATE unstuck_routes
   SET named_at = unstuck_now()
 WHERE id IN (SELECT f.id FROM unstuck_routes f WHERE f.named_at < :before ORDER BY f.named_at, f.id LIMIT :batch OFFSET :past)
   AND (named_at = 0
           OR COALESCE((SELECT j.route FROM unstuck_jobs j WHERE j.route >= unstuck_routes.id ORDER BY j.route LIMIT 1), -1) = unstuck_routes.id)
