SELECT p.uid AS parent
  FROM unstuck_jobs j
  LEFT JOIN unstuck_children c ON c.child = j.id
  LEFT JOIN unstuck_jobs p ON p.id = c.parent
 WHERE j.uid = :uid AND j.tenant = :tenant
