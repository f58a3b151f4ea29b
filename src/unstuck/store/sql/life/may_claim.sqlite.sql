SELECT 1 AS yes
  FROM unstuck_workers
 WHERE id = :worker AND state = 'active' AND lease_until > unstuck_now()
   AND (SELECT COUNT(*) FROM unstuck_running WHERE worker = :worker AND claim = :claim) = :opened
