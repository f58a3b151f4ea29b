-- What an ended job leaves.

-- name: ended_before
SELECT finished_at, job, (SELECT unstuck_now()) AS now
  FROM unstuck_done
 WHERE finished_at <= (SELECT unstuck_now() - :retention) AND (finished_at, job) > (:at, :job)
 ORDER BY finished_at, job
 LIMIT :most

-- name: count_ended
-- From the youngest back, so that the old ones are never met, whatever the statistics say.
SELECT COUNT(*) AS ended
  FROM (SELECT 1 FROM unstuck_done
         WHERE finished_at > (SELECT unstuck_now() - :span) ORDER BY finished_at DESC, job DESC LIMIT :most) AS late

-- name: forgettable
-- Locks the jobs first, as a resume does; a job that somebody is working on stays until the next time. One that blocks a target
-- or that another waits for stays as long as it does. A child stays as long as its parent's row: a spawn that is repeated must
-- find it, with its result, and not do its work twice. A signed one stays until its signature has expired: who sends that again
-- must find it. A scalar subquery: for each row by the key, never by a join of all.
SELECT d.job
  FROM unstuck_done d
  JOIN unstuck_jobs j ON j.id = d.job
 WHERE d.job {in :jobs BIGINT}
   AND d.finished_at <= (SELECT unstuck_now() - :retention)
   AND (j.signed_until IS NULL OR j.signed_until <= (SELECT unstuck_now()))
   AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks h WHERE h.job = d.job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_targets t WHERE t.id = j.target AND t.head = j.id)
   AND NOT EXISTS (SELECT 1 FROM unstuck_dependencies w WHERE w.on_job = d.job)
   AND (SELECT p.id FROM unstuck_children c JOIN unstuck_jobs p ON p.id = c.parent WHERE c.child = d.job) IS NULL
   {lock FOR UPDATE OF j, d SKIP LOCKED}

-- name: forget_done
-- Looks again: between the look and the lock the job may have been resumed, or somebody may have begun to wait for it.
DELETE FROM unstuck_done AS d
 WHERE d.job {in :jobs BIGINT}
   AND d.finished_at <= unstuck_now() - :retention
   AND NOT EXISTS (SELECT 1 FROM unstuck_dependencies w WHERE w.on_job = d.job)
RETURNING job

-- name: forget_jobs
DELETE FROM unstuck_jobs WHERE id {in :jobs BIGINT}

-- name: forget_events
DELETE FROM unstuck_events WHERE job {in :jobs BIGINT}

-- name: forget_outputs
DELETE FROM unstuck_outputs WHERE job {in :jobs BIGINT}

-- name: forget_progress
DELETE FROM unstuck_progress WHERE job {in :jobs BIGINT}

-- name: forget_past_runs
DELETE FROM unstuck_past_runs WHERE job {in :jobs BIGINT}

-- name: forget_listeners
-- What listeners left behind that were killed: their time is long over, so nobody is notified for them any more.
DELETE FROM unstuck_idle
 WHERE until <= (SELECT unstuck_now() - :age)
   AND listener IN (SELECT listener FROM unstuck_idle WHERE until <= (SELECT unstuck_now() - :age) LIMIT :batch)
