-- FOR KEY SHARE: waits for nobody but a sweep that forgets one of them at this instant, and keeps the next sweep away. Found first,
-- then locked in the order of their numbers. LATERAL ... LIMIT 1 as in find_routes.
SELECT j.id, j.tenant, j.uid
  FROM (SELECT o.id
          FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, uid TEXT)
         CROSS JOIN LATERAL (SELECT id, tenant FROM unstuck_jobs WHERE uid = r.uid LIMIT 1) AS o
         WHERE o.tenant = r.tenant
         ORDER BY o.id) AS found
 CROSS JOIN LATERAL (SELECT id, tenant, uid FROM unstuck_jobs WHERE id = found.id LIMIT 1 FOR KEY SHARE) AS j
