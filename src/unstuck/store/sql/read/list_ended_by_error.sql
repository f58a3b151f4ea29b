-- What ended by an error, of all tenants. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_done WHERE error_type = :error_type AND job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_done WHERE error_type = :error_type AND job > :after ORDER BY job LIMIT :oldest) AS up
