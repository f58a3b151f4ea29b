-- A loose index scan: one step per tenant that ever had a job, however many routes each has.
WITH RECURSIVE seen (name) AS (
    SELECT MIN(tenant) FROM unstuck_routes WHERE tenant > :after
     UNION ALL
    SELECT (SELECT MIN(later.tenant) FROM unstuck_routes later WHERE later.tenant > seen.name)
      FROM seen
     WHERE seen.name IS NOT NULL
)
SELECT name FROM seen WHERE name IS NOT NULL LIMIT :most
