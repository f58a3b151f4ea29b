-- uid is NULL of one that is gone altogether.
SELECT c.child,
       (SELECT j.uid FROM unstuck_jobs j WHERE j.id = c.child) AS uid,
       (SELECT j.tenant FROM unstuck_jobs j WHERE j.id = c.child) AS tenant,
       (SELECT p.uid FROM unstuck_jobs p WHERE p.id = c.parent) AS parent_uid,
       (SELECT e.state FROM unstuck_done e WHERE e.job = c.parent) AS parent_state
  FROM unstuck_children c
 WHERE c.left_at IS NOT NULL
 ORDER BY c.left_at, c.child
 LIMIT :batch
