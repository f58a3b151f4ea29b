-- Those whose lease holds; of one host if it is named.
SELECT w.*, (SELECT COUNT(*) FROM unstuck_running r WHERE r.worker = w.id) AS running
  FROM unstuck_workers w
 WHERE w.ended_at IS NULL AND w.lease_until > (SELECT unstuck_now())
   AND w.boot_id = COALESCE(CAST(:boot_id AS TEXT), w.boot_id)
   AND w.pid_namespace = COALESCE(CAST(:pid_namespace AS TEXT), w.pid_namespace)
 ORDER BY w.id
