SELECT h.job, h.worker, h.target
  FROM unstuck_body_marks h
  LEFT JOIN unstuck_workers w ON w.id = h.worker
 WHERE h.job {in :jobs BIGINT} AND (w.id IS NULL OR w.lease_until <= unstuck_now() - :margin)
 ORDER BY h.job
