SELECT c.child, c.name, c.ordinal, c.run, c.left_at, v.uid, v.state, v.workflow, v.request, p.uid AS parent_uid
  FROM unstuck_children c
  JOIN unstuck_job_rows v ON v.number = c.child
  JOIN unstuck_jobs p ON p.id = c.parent
 WHERE c.parent = :parent AND c.name = :name AND c.ordinal = :ordinal
