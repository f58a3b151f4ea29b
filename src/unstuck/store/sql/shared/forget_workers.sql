DELETE FROM unstuck_workers
 WHERE id IN (SELECT w.id
                FROM unstuck_workers w
               WHERE w.lease_until <= unstuck_now() - :retention
                 AND NOT EXISTS (SELECT 1 FROM unstuck_running r WHERE r.worker = w.id)
                 AND NOT EXISTS (SELECT 1 FROM unstuck_holds h WHERE h.worker = w.id)
               ORDER BY w.id
               LIMIT :batch)
