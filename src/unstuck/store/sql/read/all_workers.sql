SELECT w.*, (SELECT COUNT(*) FROM unstuck_running r WHERE r.worker = w.id) AS running
  FROM unstuck_workers w
 WHERE w.id > :after
 ORDER BY w.id
 LIMIT :most
