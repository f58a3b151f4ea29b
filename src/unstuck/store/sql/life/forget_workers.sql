-- Running rows and body marks name their worker. One that nobody has marked yet counts from the end of its lease.
DELETE FROM unstuck_workers
 WHERE id {among}
       SELECT w.id
         FROM unstuck_workers w
        WHERE w.id IN (SELECT few.id
                         FROM (SELECT e.id FROM unstuck_workers e
                                WHERE e.ended_at <= (SELECT unstuck_now() - :retention) ORDER BY e.ended_at, e.id LIMIT :batch + :past) AS few
                        UNION ALL
                       SELECT s.id FROM unstuck_workers s
                        WHERE s.ended_at IS NULL AND s.lease_until <= (SELECT unstuck_now() - :retention))
          AND NOT EXISTS (SELECT 1 FROM unstuck_running r WHERE r.worker = w.id)
          AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks h WHERE h.worker = w.id)
        LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}
