-- Those that have ended too: whoever looks at the newcomer finds all of them by these rows.
INSERT INTO unstuck_dependencies (job, on_job)
SELECT r.parent, j.id
  FROM json_to_recordset(CAST(:rows AS json)) AS r (parent BIGINT, uid TEXT)
 CROSS JOIN LATERAL (SELECT id FROM unstuck_jobs WHERE uid = r.uid LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT child FROM unstuck_children WHERE child = j.id AND parent = r.parent LIMIT 1) AS c
ON CONFLICT DO NOTHING
