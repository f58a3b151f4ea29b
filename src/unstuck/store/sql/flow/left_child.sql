-- As left_children, of one.
SELECT c.child, j.uid, j.tenant, j.target,
       (SELECT p.uid FROM unstuck_jobs p WHERE p.id = c.parent) AS parent_uid,
       (SELECT e.state FROM unstuck_done e WHERE e.job = c.parent) AS parent_state
  FROM unstuck_children c
  LEFT JOIN unstuck_jobs j ON j.id = c.child
 WHERE c.child = :child AND c.left_at IS NOT NULL
