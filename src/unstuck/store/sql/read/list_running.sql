-- The open attempts of a tenant. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_running WHERE route IN (SELECT id FROM unstuck_routes WHERE tenant = :tenant) AND job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_running WHERE route IN (SELECT id FROM unstuck_routes WHERE tenant = :tenant) AND job > :after ORDER BY job LIMIT :oldest) AS up
