-- Those that have ended too: whoever looks at the newcomer finds all of them by these rows.
INSERT INTO unstuck_dependencies (job, on_job)
SELECT c.parent, c.child
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_jobs j ON j.uid = r.value ->> 'uid'
  CROSS JOIN unstuck_children c ON c.child = j.id AND c.parent = r.value ->> 'parent'
 WHERE TRUE
ON CONFLICT DO NOTHING
