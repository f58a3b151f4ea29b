-- By number. Of those that ended only the ones of the last :silent microseconds; id + 0 keeps the planner from finding them by number. Each of the
-- two is cut to a page first: a crash loop leaves thousands, and a list of pages must not go through all of them for every page.
SELECT w.*, (SELECT COUNT(*) FROM unstuck_running r WHERE r.worker = w.id) AS running
  FROM unstuck_workers w
 WHERE w.id IN (SELECT alive.id
                  FROM (SELECT s.id FROM unstuck_workers s WHERE s.ended_at IS NULL AND s.id > :after ORDER BY s.id LIMIT :most) AS alive
                 UNION ALL
                SELECT ended.id
                  FROM (SELECT e.id FROM unstuck_workers e
                         WHERE e.ended_at > (SELECT unstuck_now()) - CAST(:silent AS BIGINT) AND e.id + 0 > :after
                         ORDER BY e.id + 0 LIMIT :most) AS ended)
 ORDER BY w.id
 LIMIT :most
