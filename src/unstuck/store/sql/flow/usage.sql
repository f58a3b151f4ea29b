-- What a job has spent of its budget.

-- name: add_usage
-- A spending that was counted before (its answer was lost) changes nothing: serials grow within an attempt, tokens with attempts.
INSERT INTO unstuck_usage AS u (job, run, unit, used, token, serial)
SELECT CAST(:job AS BIGINT), CAST(:run AS BIGINT), r.unit, r.amount, CAST(:token AS BIGINT), CAST(:serial AS BIGINT)
  FROM {rows :rows AS r (unit TEXT, amount DOUBLE PRECISION)}
 WHERE TRUE
ON CONFLICT (job, run, unit) DO UPDATE
   SET used = u.used + excluded.used, token = excluded.token, serial = excluded.serial
 WHERE (u.token, u.serial) < (excluded.token, excluded.serial)

-- name: usage
SELECT unit, used FROM unstuck_usage WHERE job = :job AND run = :run ORDER BY unit

-- name: policy_of_job
SELECT policy FROM unstuck_jobs WHERE id = :job
