SELECT c.child, c.name, c.ordinal, c.run, v.uid, v.state, v.workflow, p.uid AS parent_uid, 0 AS bytes
  FROM unstuck_children c
  JOIN unstuck_job_rows v ON v.number = c.child
  JOIN unstuck_jobs p ON p.id = c.parent
 WHERE c.parent = :job AND c.ordinal > 0
 ORDER BY c.name, c.ordinal
 LIMIT :most OFFSET :skip
