-- LATERAL ... LIMIT 1: one look per child, however many the planner expects.
SELECT c.child, c.name, c.ordinal, c.run, c.left_at, v.uid, v.state, v.workflow, v.request, p.uid AS parent_uid
  FROM unstuck_children c
  JOIN unstuck_jobs p ON p.id = c.parent
 CROSS JOIN LATERAL (SELECT uid, state, workflow, request FROM unstuck_job_rows WHERE number = c.child LIMIT 1) AS v
 WHERE c.parent = :job
 ORDER BY c.child
