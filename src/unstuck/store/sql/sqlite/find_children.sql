SELECT c.child, j.uid, d.state
  FROM json_each(:children) AS r
  CROSS JOIN unstuck_jobs j ON j.uid = r.value
  CROSS JOIN unstuck_children c ON c.child = j.id AND c.parent = :job
  LEFT JOIN unstuck_done d ON d.job = j.id
