-- Tenants and their weights.

-- name: tenant
SELECT CAST(:name AS TEXT) AS name, COALESCE((SELECT weight FROM unstuck_tenants WHERE name = :name), 1) AS weight
 WHERE EXISTS (SELECT 1 FROM unstuck_routes WHERE tenant = :name)
    OR EXISTS (SELECT 1 FROM unstuck_tenants WHERE name = :name)

-- name: tenants
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

-- name: tenant_is_known
SELECT 1 AS yes
 WHERE EXISTS (SELECT 1 FROM unstuck_routes WHERE tenant = :tenant)
    OR EXISTS (SELECT 1 FROM unstuck_tenants WHERE name = :tenant)

-- name: set_tenant
INSERT INTO unstuck_tenants (name, weight, set_at, set_by)
VALUES (:name, :weight, unstuck_now(), :by)
ON CONFLICT (name) DO UPDATE
   SET weight = excluded.weight, set_at = excluded.set_at, set_by = excluded.set_by
RETURNING name, weight

-- name: weights
SELECT name, weight FROM unstuck_tenants WHERE weight <> 1
