-- LATERAL ... LIMIT 1 as in find_routes.
SELECT c.child, j.uid, (SELECT state FROM unstuck_done WHERE job = j.id) AS state
  FROM unnest(CAST(:children AS TEXT[])) AS r (uid)
 CROSS JOIN LATERAL (SELECT id, uid FROM unstuck_jobs WHERE uid = r.uid LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT child, parent FROM unstuck_children WHERE child = j.id LIMIT 1) AS c
 WHERE c.parent = :job
