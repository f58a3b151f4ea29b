-- Who is next on each of these targets; leave_line, seat_heads and add_ready then move them. A target is open while nobody
-- has paused it and no old body may still live on it.
SELECT t.id AS target, l.place, l.job
  FROM json_each(:targets) AS r
  CROSS JOIN unstuck_targets t ON t.id = r.value
  CROSS JOIN unstuck_line l
          ON l.target = t.id
         AND (l.place, l.job) = (SELECT f.place, f.job FROM unstuck_line f
                                  WHERE f.target = t.id ORDER BY f.place, f.job LIMIT 1)
 WHERE (t.head IS NULL OR t.head = l.job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks h WHERE h.target = t.id)
   AND NOT EXISTS (SELECT 1 FROM unstuck_pauses p
                    WHERE p.kind = 'target' AND p.name = t.name AND p.tenant = t.tenant
                      AND (p.until_at IS NULL OR p.until_at > unstuck_now()))
