-- Those that have ended too: whoever looks at the newcomer finds all of them by these rows.
INSERT INTO unstuck_dependencies (job, on_job)
SELECT c.parent, c.child
  FROM unnest(CAST(:children AS TEXT[])) AS r (uid)
  JOIN unstuck_jobs j ON j.uid = r.uid
  JOIN unstuck_children c ON c.child = j.id AND c.parent = :job
ON CONFLICT DO NOTHING
