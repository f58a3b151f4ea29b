SELECT h.job, h.worker, h.target
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_holds h ON h.job = r.value
  LEFT JOIN unstuck_workers w ON w.id = h.worker
 WHERE w.id IS NULL OR w.lease_until <= unstuck_now() - :margin
 ORDER BY h.job
