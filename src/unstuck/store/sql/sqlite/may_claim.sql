SELECT 1 AS yes
  FROM unstuck_workers
 WHERE id = :worker AND state = 'active' AND lease_until > unstuck_now()
   AND NOT EXISTS (SELECT 1 FROM unstuck_running WHERE worker = :worker AND claim = :claim)
