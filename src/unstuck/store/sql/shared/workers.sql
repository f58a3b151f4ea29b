-- By number. Of those that ended only the ones of the last :silent microseconds; id + 0 keeps the planner from finding them by number.
SELECT w.*, (SELECT COUNT(*) FROM unstuck_running r WHERE r.worker = w.id) AS running
  FROM unstuck_workers w
 WHERE w.id IN (SELECT s.id FROM unstuck_workers s WHERE s.ended_at IS NULL AND s.id > :after
                 UNION ALL
                SELECT e.id FROM unstuck_workers e WHERE e.ended_at > (SELECT unstuck_now()) - CAST(:silent AS BIGINT) AND e.id + 0 > :after)
 ORDER BY w.id
 LIMIT :most
