SELECT j.route, COALESCE(t.blocked_by, t.head) AS head
  FROM unstuck_jobs j
  LEFT JOIN unstuck_targets t ON t.id = j.target
 WHERE j.uid = :uid AND j.tenant = :tenant
