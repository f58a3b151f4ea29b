-- uid is NULL of one that is gone altogether.
SELECT c.left_at, c.child,
       (SELECT j.uid FROM unstuck_jobs j WHERE j.id = c.child) AS uid,
       (SELECT j.tenant FROM unstuck_jobs j WHERE j.id = c.child) AS tenant,
       (SELECT j.target FROM unstuck_jobs j WHERE j.id = c.child) AS target,
       (SELECT p.uid FROM unstuck_jobs p WHERE p.id = c.parent) AS parent_uid,
       (SELECT e.state FROM unstuck_done e WHERE e.job = c.parent) AS parent_state
  FROM unstuck_children c
 WHERE c.left_at IS NOT NULL AND (c.left_at, c.child) > (:after_at, :after_child)
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'children' AND q.item = c.child)
 ORDER BY c.left_at, c.child
 LIMIT :batch
