SELECT c.child, j.uid, d.state
  FROM unnest(CAST(:children AS TEXT[])) AS r (uid)
  JOIN unstuck_jobs j ON j.uid = r.uid
  JOIN unstuck_children c ON c.child = j.id AND c.parent = :job
  LEFT JOIN unstuck_done d ON d.job = j.id
