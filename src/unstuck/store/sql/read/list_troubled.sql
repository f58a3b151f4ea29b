-- What ended in a state that is no success, of all tenants. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_done WHERE state = :state AND state <> 'COMPLETED' AND job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_done WHERE state = :state AND state <> 'COMPLETED' AND job > :after ORDER BY job LIMIT :oldest) AS up
