-- What parked jobs wait for.

-- name: count_waits
-- Of each of these runs, beside the one of this key; no further than :most.
SELECT r.job, (SELECT COUNT(*)
                 FROM (SELECT 1 FROM unstuck_waits w WHERE w.job = r.job AND w.run = r.run AND w.key <> r.key LIMIT :most) AS counted) AS waits
  FROM {rows :rows AS r (job BIGINT, run BIGINT, key TEXT)}

-- name: waits_asked
-- Without the answers themselves, each of which may be large: they are read with the journal.
SELECT w.job, w.run, w.key, w.kind, w.name, w.until_at, w.answer, w.answered_at, w.by, w.comment
  FROM {rows :rows AS r (job BIGINT, run BIGINT, key TEXT)}
  {by_key unstuck_waits AS w ON w.job = r.job AND w.run = r.run AND w.key = r.key}

-- name: add_waits
INSERT INTO unstuck_waits (job, run, key, tenant, kind, name, address, spec, token, asked_at, until_at, answer, payload, answered_at, by)
SELECT job, run, key, tenant, kind, name, address, spec, token, asked_at, until_at, answer, payload, answered_at, by
  FROM {rows :rows AS r (
             job BIGINT, run BIGINT, key TEXT, tenant TEXT, kind TEXT, name TEXT, address TEXT, spec TEXT, token
             BIGINT, asked_at BIGINT, until_at BIGINT, answer TEXT, payload TEXT, answered_at BIGINT, by TEXT)}

-- name: job_waits
SELECT w.*, j.uid, j.workflow
  FROM unstuck_jobs j
  JOIN unstuck_waits w ON w.job = j.id
 WHERE j.tenant = :tenant AND j.uid = :uid
 ORDER BY w.run, w.token, w.key

-- name: waits_page
-- All of a job, in the order it asked for them, behind :skip of them; as steps_page.
SELECT p.*, j.uid, j.workflow
  FROM (SELECT w.*, {bytes w.spec} + COALESCE({bytes w.payload}, 0) AS bytes,
               SUM({bytes w.spec} + COALESCE({bytes w.payload}, 0)) OVER (ORDER BY w.run, w.token, w.key) AS upto
          FROM (SELECT job, run, key
                  FROM unstuck_waits
                 WHERE job = :job
                 ORDER BY run, token, key
                 LIMIT :most OFFSET :skip) AS k
          JOIN unstuck_waits AS w ON w.job = k.job AND w.run = k.run AND w.key = k.key) AS p
  JOIN unstuck_jobs j ON j.id = p.job
 WHERE p.upto - p.bytes < :room
 ORDER BY p.run, p.token, p.key

-- name: open_waits
-- The oldest first.
SELECT w.*, j.uid, j.workflow
  FROM unstuck_waits w
  JOIN unstuck_jobs j ON j.id = w.job
 WHERE w.tenant = :tenant AND w.kind = :kind AND w.answer IS NULL
   AND {within j.queue j.workflow}
   AND (w.asked_at, w.job) > (CAST(:after_at AS BIGINT), CAST(:after_job AS BIGINT))
 ORDER BY w.asked_at, w.job
 LIMIT :most

-- name: open_waits_everywhere
-- The oldest of all tenants first.
SELECT w.*, j.uid, j.workflow
  FROM unstuck_waits w
  JOIN unstuck_jobs j ON j.id = w.job
 WHERE w.kind = :kind AND w.answer IS NULL
   AND {within j.queue j.workflow}
   AND (w.asked_at, w.job) > (CAST(:after_at AS BIGINT), CAST(:after_job AS BIGINT))
 ORDER BY w.asked_at, w.job
 LIMIT :most

-- name: open_waits_of
-- What WAITING jobs wait for and has not come: one row each, none for a job whose answer is there. Only the wait that a
-- run asked for last can be open: the others of a long loop are not read.
SELECT w.*
  FROM {list :jobs AS r (job BIGINT)}
  {by_key unstuck_jobs AS j ON j.id = r.job AND j.state = 'WAITING'}
  {by_key unstuck_waits AS w ON w.job = j.id AND w.run = j.run
      AND w.key = (SELECT o.key FROM unstuck_waits o WHERE o.job = j.id AND o.run = j.run ORDER BY o.token DESC LIMIT 1)}
 WHERE w.answer IS NULL
 ORDER BY w.job

-- name: last_waits_of
-- Of each of these jobs what its present run asked for last. Without the answers themselves, each of which may be large:
-- they are read with the journal.
SELECT w.job, w.run, w.key, w.kind, w.name, w.until_at, w.answer, w.answered_at, w.by, w.comment
  FROM {list :jobs AS r (job BIGINT)}
  {by_key unstuck_jobs AS j ON j.id = r.job}
  {by_key unstuck_waits AS w ON w.job = j.id AND w.run = j.run
      AND w.key = (SELECT o.key FROM unstuck_waits o WHERE o.job = j.id AND o.run = j.run ORDER BY o.token DESC LIMIT 1)}

-- name: journal_waits
-- As journal_steps: of this run those that are answered. The job is joined last, not once for every row that is passed over.
SELECT p.*, j.uid, j.workflow
  FROM (SELECT w.*, COALESCE({bytes w.payload}, 0) AS bytes, SUM(COALESCE({bytes w.payload}, 0)) OVER (ORDER BY w.key) AS upto
          FROM (SELECT *
                  FROM unstuck_waits
                 WHERE job = :job AND run = :run AND answer IS NOT NULL
                 ORDER BY key
                 LIMIT :most OFFSET :skip) AS w) AS p
  JOIN unstuck_jobs j ON j.id = p.job
 WHERE p.upto - p.bytes < :room
 ORDER BY p.key

-- name: oldest_wait
-- run: of the job whose address it is; a topic has none.
SELECT w.job, w.run, w.key, j.uid
  FROM unstuck_waits w
  JOIN unstuck_jobs j ON j.id = w.job
 WHERE w.tenant = :tenant AND w.address = :address AND w.name = :event AND w.answer IS NULL
   AND (CAST(:run AS BIGINT) IS NULL OR w.run = CAST(:run AS BIGINT))
 ORDER BY w.asked_at, w.job
 LIMIT 1

-- name: answer_wait
-- Whoever writes the answer first has decided: who comes second finds it no longer open.
UPDATE unstuck_waits
   SET answer = :answer, payload = :payload, by = :by, comment = :comment, answered_at = unstuck_now()
 WHERE job = :job AND run = :run AND key = :key AND answer IS NULL

-- name: decide_wait
-- A job has one open wait at most, of its present run.
UPDATE unstuck_waits
   SET answer = :answer, by = :by, comment = :comment, answered_at = unstuck_now()
 WHERE job = :job AND kind = 'approval' AND answer IS NULL AND (CAST(:key AS TEXT) IS NULL OR key = CAST(:key AS TEXT))
RETURNING *

-- name: waiting_jobs
-- Their rows are locked, so what they keep of a target nobody else changes.
SELECT j.id AS number, j.id AS job, j.uid, j.state, j.route, j.target AS target_number, j.priority, j.policy, j.run, j.token, j.event_count, j.failures,
       j.losses, j.suspects, j.alone, j.started, CASE WHEN g.head = j.id THEN 1 ELSE 0 END AS is_head, unstuck_now() AS now
  FROM unstuck_jobs j
  LEFT JOIN unstuck_targets g ON g.id = j.target
 WHERE j.id {in :jobs BIGINT} AND j.state = 'WAITING'
 ORDER BY j.id

-- name: drop_open_wait
-- One that was answered at this instant stays: it was, though nobody will hear of it.
DELETE FROM unstuck_waits WHERE job = :job AND run = :run AND answer IS NULL

-- name: drop_wait_timers
DELETE FROM unstuck_timers
 WHERE kind = 'wait' AND job = :job
   AND due_at IN (SELECT w.until_at FROM unstuck_waits w WHERE w.job = :job AND w.run = :run)

-- name: next_timer
-- How long until the first of them comes due, in microseconds; below zero where it is overdue. What is set aside is not counted.
SELECT t.due_at - unstuck_now() AS ahead
  FROM unstuck_timers t
 WHERE t.kind = :kind AND (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = :kind AND q.item = t.job) IS NULL
 ORDER BY t.due_at, t.job
 LIMIT 1

-- name: due_wait_timers
-- is_orphan: the timer has outlived its job.
SELECT t.due_at, t.job, (SELECT 1 FROM unstuck_jobs j WHERE j.id = t.job) IS NULL AS is_orphan, (SELECT unstuck_now()) AS now
  FROM unstuck_timers t
 WHERE t.kind = 'wait' AND t.due_at <= (SELECT unstuck_now()) AND (t.due_at, t.job) > (:after_at, :after_job)
   AND (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'wait' AND q.item = t.job) IS NULL
 ORDER BY t.due_at, t.job
 LIMIT :batch

-- name: due_timers_of_waits
-- Of these jobs the timers of their waits that came due.
SELECT DISTINCT t.due_at, t.job
  FROM {list :jobs AS r (job BIGINT)}
  {all_by_key unstuck_waits AS w ON w.job = r.job}
  {all_by_key unstuck_timers AS t ON t.kind = 'wait' AND t.due_at = w.until_at AND t.job = r.job AND t.due_at <= (SELECT unstuck_now())}
