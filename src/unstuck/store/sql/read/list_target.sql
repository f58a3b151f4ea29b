-- All jobs of a target. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE target = :target AND id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE target = :target AND id > :after ORDER BY id LIMIT :oldest) AS up
