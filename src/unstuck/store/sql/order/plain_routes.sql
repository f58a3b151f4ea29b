-- The routes without a limit key, by their names: a step per tenant, queue and workflow, however many keys each of them has. Of one
-- workflow the route without a key comes first; where it is not, none has been needed yet. In three parts, because SQLite searches no
-- further than the first column of a row that it compares.
WITH RECURSIVE first_of (id, step) AS (
    SELECT (SELECT id FROM unstuck_routes WHERE tenant > '' ORDER BY tenant, queue, workflow, limit_key LIMIT 1), 1
     UNION ALL
    SELECT COALESCE(
             (SELECT later.id FROM unstuck_routes later
               WHERE later.tenant = route.tenant AND later.queue = route.queue AND later.workflow > route.workflow
               ORDER BY later.tenant, later.queue, later.workflow, later.limit_key LIMIT 1),
             (SELECT later.id FROM unstuck_routes later
               WHERE later.tenant = route.tenant AND later.queue > route.queue
               ORDER BY later.tenant, later.queue, later.workflow, later.limit_key LIMIT 1),
             (SELECT later.id FROM unstuck_routes later
               WHERE later.tenant > route.tenant
               ORDER BY later.tenant, later.queue, later.workflow, later.limit_key LIMIT 1)),
           first_of.step + 1
      FROM first_of
      JOIN unstuck_routes route ON route.id = first_of.id
     WHERE first_of.step < :most
)
SELECT route.id AS route
  FROM first_of
  JOIN unstuck_routes route ON route.id = first_of.id
 WHERE route.limit_key = ''
