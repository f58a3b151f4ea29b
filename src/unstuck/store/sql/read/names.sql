-- Names of tenants, queues and workflows.

-- name: tenant_names
-- A loose index scan: one step per tenant that ever had a job, however many routes each has.
WITH RECURSIVE seen (name) AS (
    SELECT MIN(tenant) FROM unstuck_routes WHERE tenant > :after
     UNION ALL
    SELECT (SELECT MIN(later.tenant) FROM unstuck_routes later WHERE later.tenant > seen.name)
      FROM seen
     WHERE seen.name IS NOT NULL
)
SELECT name FROM seen WHERE name IS NOT NULL LIMIT :most

-- name: queue_names
-- In the order of Python, whatever the database's locale: callers add names of their own to a page.
SELECT DISTINCT {binary queue} AS name
  FROM unstuck_routes
 WHERE tenant = :tenant AND {binary queue} > :after
 ORDER BY name
 LIMIT :most

-- name: workflow_names
-- In the order of Python, whatever the database's locale: callers add names of their own to a page.
SELECT DISTINCT {binary workflow} AS name
  FROM unstuck_routes
 WHERE tenant = :tenant AND {binary workflow} > :after
 ORDER BY name
 LIMIT :most

-- name: routes_everywhere
SELECT id
  FROM unstuck_routes
 WHERE (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
   AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
   AND {within queue workflow}
 LIMIT :most

-- name: routes_of_tenant
SELECT id
  FROM unstuck_routes
 WHERE tenant = :tenant
   AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
   AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
   AND {within queue workflow}
 LIMIT :most
