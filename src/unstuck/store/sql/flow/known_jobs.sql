-- FOR KEY SHARE: waits for nobody but a sweep that forgets one of them at this instant, and keeps the next sweep away.
-- Found first, then locked in the order of their numbers.
SELECT j.id, j.tenant, j.uid
  FROM (SELECT o.id
          FROM {rows :rows AS r (tenant TEXT, uid TEXT)}
          {by_key unstuck_jobs AS o ON o.uid = r.uid}
         WHERE o.tenant = r.tenant
         ORDER BY o.id) AS found
  {by_key unstuck_jobs AS j ON j.id = found.id FOR KEY SHARE}
