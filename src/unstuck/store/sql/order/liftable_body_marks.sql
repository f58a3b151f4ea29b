SELECT h.job
  FROM unstuck_body_marks h
  LEFT JOIN unstuck_workers w ON w.id = h.worker
 WHERE h.job > :after AND (w.id IS NULL OR w.lease_until <= unstuck_now() - :margin)
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'hold' AND q.item = h.job)
 ORDER BY h.job
 LIMIT :batch
