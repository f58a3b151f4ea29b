SELECT c.child, c.name, c.ordinal, c.run, c.left_at, v.uid, v.state, v.workflow, v.request, p.uid AS parent_uid
  FROM unstuck_children c
  JOIN unstuck_jobs p ON p.id = c.parent
  {by_key unstuck_job_rows AS v ON v.number = c.child}
 WHERE c.parent = :job
 ORDER BY c.child
