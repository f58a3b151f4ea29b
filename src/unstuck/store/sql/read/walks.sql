-- Where the jobs of a list are looked for: numbers behind a place, in the list's order.

-- name: list_running
-- The open attempts of a tenant. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_running WHERE route IN (SELECT id FROM unstuck_routes WHERE tenant = :tenant) AND job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_running WHERE route IN (SELECT id FROM unstuck_routes WHERE tenant = :tenant) AND job > :after ORDER BY job LIMIT :oldest) AS up

-- name: list_resting
-- The jobs of a tenant that rest in a state. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE tenant = :tenant AND state = :state AND state <> 'QUEUED' AND id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE tenant = :tenant AND state = :state AND state <> 'QUEUED' AND id > :after ORDER BY id LIMIT :oldest) AS up

-- name: list_tag
-- All jobs with a tag. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_tags WHERE tenant = :tenant AND tag = :tag AND job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_tags WHERE tenant = :tenant AND tag = :tag AND job > :after ORDER BY job LIMIT :oldest) AS up

-- name: list_target
-- All jobs of a target. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE target = :target AND id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE target = :target AND id > :after ORDER BY id LIMIT :oldest) AS up

-- name: list_route
-- All jobs of a route. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE route = :route AND id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE route = :route AND id > :after ORDER BY id LIMIT :oldest) AS up

-- name: list_tenant
-- All jobs of a tenant. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE tenant = :tenant AND id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE tenant = :tenant AND id > :after ORDER BY id LIMIT :oldest) AS up

-- name: list_everything
-- All jobs of all tenants. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE id > :after ORDER BY id LIMIT :oldest) AS up

-- name: list_everything_running
-- The open attempts of all tenants. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_running WHERE job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_running WHERE job > :after ORDER BY job LIMIT :oldest) AS up

-- name: list_troubled
-- What ended in a state that is no success, of all tenants. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_done WHERE state = :state AND state <> 'COMPLETED' AND job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_done WHERE state = :state AND state <> 'COMPLETED' AND job > :after ORDER BY job LIMIT :oldest) AS up

-- name: list_met_by_error
-- What met an error and went on, of all tenants; some may have ended otherwise since. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE error_type = :error_type AND id < :after ORDER BY id DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT id AS number FROM unstuck_jobs WHERE error_type = :error_type AND id > :after ORDER BY id LIMIT :oldest) AS up

-- name: list_ended_by_error
-- What ended by an error, of all tenants. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_done WHERE error_type = :error_type AND job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_done WHERE error_type = :error_type AND job > :after ORDER BY job LIMIT :oldest) AS up

-- name: list_letters
-- The jobs of a tenant that have a dead letter. Of :newest and :oldest one is 0: a page goes one way only.
SELECT number
  FROM (SELECT job AS number FROM unstuck_dead_letters WHERE tenant = :tenant AND job < :after ORDER BY job DESC LIMIT :newest) AS down
 UNION ALL
SELECT number
  FROM (SELECT job AS number FROM unstuck_dead_letters WHERE tenant = :tenant AND job > :after ORDER BY job LIMIT :oldest) AS up
