-- PENDING jobs: held by a person, or waiting for other jobs to end.

-- name: add_dependencies
INSERT INTO unstuck_dependencies (job, on_job)
SELECT job, on_job FROM {rows :rows AS r (job BIGINT, on_job BIGINT)}

-- name: drop_dependencies
DELETE FROM unstuck_dependencies WHERE job {in :jobs BIGINT}

-- name: dependants
-- Whom news of these jobs concerns: who waits for one of them, and those of them that wait themselves.
SELECT d.job FROM unstuck_dependencies d WHERE d.on_job {in :jobs BIGINT}
 UNION
SELECT d.job FROM unstuck_dependencies d WHERE d.job {in :jobs BIGINT}
 ORDER BY job

-- name: dependencies_of
SELECT d.job, d.on_job, o.uid, e.state, e.error_type, a.job IS NOT NULL AS is_running
  FROM unstuck_dependencies d
  LEFT JOIN unstuck_jobs o ON o.id = d.on_job
  LEFT JOIN unstuck_done e ON e.job = d.on_job
  LEFT JOIN unstuck_running a ON a.job = d.on_job
 WHERE d.job {in :jobs BIGINT}
 ORDER BY d.job, d.on_job

-- name: known_jobs
-- FOR KEY SHARE: waits for nobody but a sweep that forgets one of them at this instant, and keeps the next sweep away.
-- Found first, then locked in the order of their numbers.
SELECT j.id, j.tenant, j.uid
  FROM (SELECT o.id
          FROM {rows :rows AS r (tenant TEXT, uid TEXT)}
          {by_key unstuck_jobs AS o ON o.uid = r.uid}
         WHERE o.tenant = r.tenant
         ORDER BY o.id) AS found
  {by_key unstuck_jobs AS j ON j.id = found.id FOR KEY SHARE}

-- name: pending_jobs
SELECT j.id AS number, j.route, j.target AS target_number, j.priority, j.policy, j.run, j.token, j.event_count, j.failures, j.losses,
       j.suspects, j.alone, j.started, j.available_at, j.on_hold, j.after_failure, unstuck_now() AS now,
       CASE WHEN j.token = 0 THEN j.appointed END AS appointed, unstuck_ahead() AS ahead
  FROM unstuck_jobs j
 WHERE j.id {in :jobs BIGINT} AND j.state = 'PENDING'
   AND NOT EXISTS (SELECT 1 FROM unstuck_done e WHERE e.job = j.id)
 ORDER BY j.id

-- name: lock_awaited
-- The open attempts of what these jobs wait for. While we hold them nobody can end them; one that is missing is being ended.
SELECT a.job
  FROM unstuck_running a
 WHERE a.job {among} SELECT d.on_job FROM unstuck_dependencies d WHERE d.job {in :jobs BIGINT}{end}
 ORDER BY a.job
   {lock FOR NO KEY UPDATE SKIP LOCKED}

-- name: mark_awaited
UPDATE unstuck_running SET awaited = 1 WHERE job {in :jobs BIGINT} AND awaited = 0

-- name: who_waits
-- Those of these jobs that still wait for others.
SELECT r.job
  FROM {list :jobs AS r (job BIGINT)}
 WHERE (SELECT 1 FROM unstuck_dependencies d WHERE d.job = r.job LIMIT 1) = 1

-- name: is_running
SELECT job FROM unstuck_running WHERE job = :job

-- name: unhold
UPDATE unstuck_jobs SET on_hold = 0 WHERE id = :job

-- name: unhold_jobs
UPDATE unstuck_jobs SET on_hold = 0 WHERE id {in :jobs BIGINT}
