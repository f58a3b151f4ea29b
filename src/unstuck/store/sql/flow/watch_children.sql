-- Those that have ended too: whoever looks at the newcomer finds all of them by these rows.
INSERT INTO unstuck_dependencies (job, on_job)
SELECT r.parent, j.id
  FROM {rows :rows AS r (parent BIGINT, uid TEXT)}
  {by_key unstuck_jobs AS j ON j.uid = r.uid}
  {by_key unstuck_children AS c ON c.child = j.id AND c.parent = r.parent}
ON CONFLICT DO NOTHING
