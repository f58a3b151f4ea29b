-- A loose index scan over the routes: one step per tenant that ever had a job, however many routes it has.
WITH RECURSIVE seen (name) AS (
    SELECT MIN(tenant) FROM unstuck_routes WHERE tenant > :after
     UNION ALL
    SELECT (SELECT MIN(later.tenant) FROM unstuck_routes later WHERE later.tenant > seen.name)
      FROM seen
     WHERE seen.name IS NOT NULL
)
SELECT name, MAX(weight) AS weight
  FROM (SELECT name, 1 AS weight FROM (SELECT name FROM seen WHERE name IS NOT NULL LIMIT :most) AS used
         UNION ALL
        SELECT name, weight
          FROM (SELECT name, weight FROM unstuck_tenants WHERE name > :after ORDER BY name LIMIT :most) AS weighed) AS found
 GROUP BY name
 ORDER BY name
 LIMIT :most
