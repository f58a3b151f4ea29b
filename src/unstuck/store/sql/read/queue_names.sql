-- In the order of Python, whatever the database's locale: callers add names of their own to a page.
SELECT DISTINCT {binary queue} AS name
  FROM unstuck_routes
 WHERE tenant = :tenant AND {binary queue} > :after
 ORDER BY name
 LIMIT :most
