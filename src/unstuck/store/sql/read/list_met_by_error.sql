-- What met an error and went on, of all tenants; some may have ended otherwise since. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE error_type = :error_type AND id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE error_type = :error_type AND id > :after ORDER BY id LIMIT :oldest) AS up
