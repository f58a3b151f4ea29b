-- In the order of Python, whatever the database's locale: callers add names of their own to a page.
SELECT DISTINCT workflow COLLATE "C" AS name
  FROM unstuck_routes
 WHERE tenant = :tenant AND workflow COLLATE "C" > :after
 ORDER BY name
 LIMIT :most
