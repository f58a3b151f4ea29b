-- Bulks: a verb over all the jobs that a filter wants.

-- name: start_bulk
-- Jobs that are younger than the newest there is do not count. A key that is known is a repeat, and changes nothing.
INSERT INTO unstuck_bulks (key, tenant, verb, filter, reason, from_start, force, by, expected, upto, began_at, carried_at)
SELECT :key, :tenant, :verb, :filter, :reason, :from_start, :force, :by, :expected,
       COALESCE((SELECT MAX(id) FROM unstuck_jobs), 0), now.at, now.at
  FROM (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
ON CONFLICT (key) DO NOTHING

-- name: bulk_by_key
SELECT * FROM unstuck_bulks WHERE key = :key

-- name: bulk
SELECT * FROM unstuck_bulks WHERE id = :number

-- name: bulks
SELECT * FROM unstuck_bulks
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
   AND (CAST(:state AS TEXT) IS NULL OR state = CAST(:state AS TEXT))
   AND id < :before
 ORDER BY id DESC
 LIMIT :most

-- name: running_bulks
-- Whoever was carried on longest ago comes first.
SELECT id, unstuck_now() AS now FROM unstuck_bulks WHERE state = 'RUNNING' ORDER BY carried_at, id LIMIT :most

-- name: lock_bulk
-- Nothing while another worker carries it on: that one does what is to be done.
SELECT * FROM unstuck_bulks WHERE id = :number {lock FOR UPDATE SKIP LOCKED}

-- name: advance_bulk
-- Nothing if another worker has looked further, or somebody ended it.
UPDATE unstuck_bulks
   SET cursor = :looked_to, matched = matched + :found, carried_at = unstuck_now()
 WHERE id = :number AND cursor = :seen AND state = 'RUNNING'

-- name: add_bulk_jobs
INSERT INTO unstuck_bulk_jobs (bulk, job) SELECT :number, found.job FROM {list :jobs AS found (job BIGINT)}

-- name: has_new_bulk_jobs
SELECT job FROM unstuck_bulk_jobs WHERE bulk = :number AND tried_at = 0 ORDER BY job LIMIT 1

-- name: due_bulk_jobs
-- Those that nobody has tried yet, then those that were held; who looks for them before :before meets each once.
SELECT job FROM unstuck_bulk_jobs WHERE bulk = :number AND tried_at < :before ORDER BY tried_at, job LIMIT :most

-- name: bulk_jobs
SELECT job, held_at FROM unstuck_bulk_jobs WHERE bulk = :number AND job {in :jobs BIGINT} ORDER BY job

-- name: places_of_jobs
SELECT j.id, j.uid, j.target
  FROM {list :jobs AS asked (job BIGINT)}
  {by_key unstuck_jobs AS j ON j.id = asked.job}
 ORDER BY j.id

-- name: lock_free_attempts
SELECT job FROM unstuck_running WHERE job {in :jobs BIGINT} ORDER BY job {lock FOR UPDATE SKIP LOCKED}

-- name: drop_bulk_jobs
DELETE FROM unstuck_bulk_jobs WHERE bulk = :number AND job {in :jobs BIGINT}

-- name: keep_bulk_jobs
UPDATE unstuck_bulk_jobs SET held_at = COALESCE(held_at, :now), tried_at = :now WHERE bulk = :number AND job {in :jobs BIGINT}

-- name: count_bulk
UPDATE unstuck_bulks
   SET done = done + :done, refused = refused + :refused, moved_on = moved_on + :moved_on, reasons = :reasons,
       carried_at = unstuck_now()
 WHERE id = :number

-- name: finish_bulk
UPDATE unstuck_bulks
   SET state = 'DONE', ended_at = unstuck_now()
 WHERE id = :number AND state = 'RUNNING' AND cursor >= upto
   AND NOT EXISTS (SELECT 1 FROM unstuck_bulk_jobs b WHERE b.bulk = unstuck_bulks.id)

-- name: end_bulk
UPDATE unstuck_bulks
   SET state = :state, ended_at = unstuck_now(), ended_by = :by, error = :error
 WHERE id = :number AND state = 'RUNNING'

-- name: forget_bulk_jobs
DELETE FROM unstuck_bulk_jobs WHERE bulk = :number

-- name: forget_bulks
DELETE FROM unstuck_bulks
 WHERE id {among}
       SELECT id FROM unstuck_bulks
        WHERE ended_at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) ORDER BY ended_at LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}
