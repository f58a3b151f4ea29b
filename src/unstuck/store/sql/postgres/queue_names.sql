-- In the order of Python, whatever the database's locale: callers add names of their own to a page.
SELECT DISTINCT queue COLLATE "C" AS name
  FROM unstuck_routes
 WHERE tenant = :tenant AND queue COLLATE "C" > :after
 ORDER BY name
 LIMIT :most
