-- What jobs call; by_key, because who asks for few must not read many, whatever the statistics say.

-- name: calls_of_jobs
-- And whose they are, of all tenants: an id is one job's.
SELECT j.uid, j.tenant, j.workflow, j.payload
  FROM {list :uids AS asked (uid TEXT)}
  {by_key unstuck_jobs AS j ON j.uid = asked.uid}

-- name: calls_by_number
SELECT j.id, j.tenant, j.workflow, j.payload
  FROM {list :jobs AS asked (job BIGINT)}
  {by_key unstuck_jobs AS j ON j.id = asked.job}
