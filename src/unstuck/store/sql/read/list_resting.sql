-- The jobs of a tenant that rest in a state. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE tenant = :tenant AND state = :state AND state <> 'QUEUED' AND id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE tenant = :tenant AND state = :state AND state <> 'QUEUED' AND id > :after ORDER BY id LIMIT :oldest) AS up
