-- Dead letters.

-- name: add_dead_letters
-- A repeat of the same end leaves the first letter. What it answers is told of.
INSERT INTO unstuck_dead_letters (job, run, tenant, queue, workflow, reason, message, signature, created_at)
SELECT job, run, tenant, queue, workflow, reason, message, signature, now.at
  FROM {rows :rows AS r (job BIGINT, run BIGINT, tenant TEXT, queue TEXT, workflow TEXT, reason TEXT, message TEXT, signature TEXT)}
 CROSS JOIN (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
 ORDER BY job
ON CONFLICT (job, run) DO NOTHING
RETURNING job, run, tenant, workflow, reason

-- name: addresses_of_letters
-- What a letter says of its job, of those whose end makes one. What is too long to be an envelope is not read; bytes, because SQLite keeps any,
-- and a damaged one must not keep the end from being written.
SELECT id, tenant, queue, workflow,
       CASE WHEN {bytes signature} <= CAST(:longest AS BIGINT) THEN {postgres signature}{sqlite CAST(signature AS BLOB)} END AS signature
  FROM unstuck_jobs
 WHERE id {in :jobs BIGINT}

-- name: dead_letters
-- Of all tenants, the newest first. uid NULL: its job is gone. Jobs are looked at when it is clear which letters these are.
SELECT l.id, j.uid, l.run, l.tenant, l.queue, l.workflow, l.reason, l.message, l.signature, l.created_at
  FROM (SELECT *
          FROM unstuck_dead_letters
         WHERE id < :below
           AND (CAST(:reason AS TEXT) IS NULL OR reason = CAST(:reason AS TEXT))
           AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
           AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
           AND {within queue workflow}
           AND (CAST(:since AS BIGINT) IS NULL OR created_at >= CAST(:since AS BIGINT))
           AND (CAST(:before AS BIGINT) IS NULL OR created_at < CAST(:before AS BIGINT))
         ORDER BY id DESC
         LIMIT :most) AS l
  {by_key_or_null unstuck_jobs AS j ON j.id = l.job}
 ORDER BY l.id DESC

-- name: dead_letters_of
-- The same of one tenant, along its own index: what others have is not looked at.
SELECT l.id, j.uid, l.run, l.tenant, l.queue, l.workflow, l.reason, l.message, l.signature, l.created_at
  FROM (SELECT *
          FROM unstuck_dead_letters
         WHERE tenant = :tenant AND id < :below
           AND (CAST(:reason AS TEXT) IS NULL OR reason = CAST(:reason AS TEXT))
           AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
           AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
           AND {within queue workflow}
           AND (CAST(:since AS BIGINT) IS NULL OR created_at >= CAST(:since AS BIGINT))
           AND (CAST(:before AS BIGINT) IS NULL OR created_at < CAST(:before AS BIGINT))
         ORDER BY id DESC
         LIMIT :most) AS l
  {by_key_or_null unstuck_jobs AS j ON j.id = l.job}
 ORDER BY l.id DESC

-- name: dead_letter
-- Of one job the letter of its last run.
SELECT l.id, j.uid, l.run, l.tenant, l.queue, l.workflow, l.reason, l.message, l.signature, l.created_at
  FROM unstuck_jobs j
  JOIN unstuck_dead_letters l ON l.job = j.id
 WHERE j.uid = :uid AND j.tenant = :tenant
 ORDER BY l.run DESC
 LIMIT 1

-- name: drop_dead_letters
DELETE FROM unstuck_dead_letters WHERE job = :job

-- name: forget_dead_letters
DELETE FROM unstuck_dead_letters WHERE job {in :jobs BIGINT}

-- name: forget_old_letters
DELETE FROM unstuck_dead_letters
 WHERE id {among}
       SELECT id FROM unstuck_dead_letters WHERE created_at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) ORDER BY created_at LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: sign_again
-- Its row stays until the last of its signatures has expired: who sends an earlier one again must find it, too.
UPDATE unstuck_jobs
   SET signature = :signature,
       signed_until = CASE WHEN signed_until > :signed_until THEN signed_until ELSE :signed_until END
 WHERE id = :job

-- name: count_notification
-- One more of what an open notification tells. Who holds it at this instant keeps nobody waiting: then these are not counted.
UPDATE unstuck_notifications
   SET count = COALESCE(count, 0) + :more
 WHERE id {among}
       SELECT id FROM unstuck_notifications WHERE id = :number {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: open_notification
SELECT id FROM unstuck_notifications
 WHERE acked_at IS NULL AND title = :title AND link = :link AND tenant = :tenant AND workflow = :workflow
 ORDER BY id
 LIMIT 1
