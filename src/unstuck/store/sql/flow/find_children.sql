SELECT c.child, j.uid, (SELECT state FROM unstuck_done WHERE job = j.id) AS state
  FROM {list :children AS r (uid TEXT)}
  {by_key unstuck_jobs AS j ON j.uid = r.uid}
  {by_key unstuck_children AS c ON c.child = j.id}
 WHERE c.parent = :job
