SELECT w.*, COALESCE(held.running, 0) AS running
  FROM unstuck_workers w
  LEFT JOIN (SELECT worker, COUNT(*) AS running FROM unstuck_running GROUP BY worker) AS held ON held.worker = w.id
 ORDER BY w.id
