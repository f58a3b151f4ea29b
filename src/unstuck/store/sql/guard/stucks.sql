-- Marks against workflows, under the lock of their breaker.

-- name: lock_breaker
-- Makes the breaker if it is new, and locks it in either case: what is counted after this is counted by one at a time.
INSERT INTO unstuck_breakers (tenant, workflow)
VALUES (:tenant, :workflow)
ON CONFLICT (tenant, workflow) DO UPDATE SET cleared_upto = unstuck_breakers.cleared_upto

-- name: lock_breakers
-- Those of a workflow: of one tenant, or (NULL) of all. Sorted as a settlement takes them: by code points, whatever the locale.
SELECT tenant
  FROM unstuck_breakers
 WHERE workflow = :workflow AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
 ORDER BY {binary tenant}, workflow
   {lock FOR UPDATE}

-- name: add_stucks
INSERT INTO unstuck_stucks (tenant, workflow, at, job, token, kind, is_proven)
SELECT tenant, workflow, unstuck_now(), job, token, kind, is_proven
  FROM {rows :rows AS r (tenant TEXT, workflow TEXT, job BIGINT, token BIGINT, kind TEXT, is_proven SMALLINT)}

-- name: count_stucks
-- Under the breaker's lock, in a statement after it: this snapshot shows what everybody before us has written.
SELECT CASE WHEN s.is_proven = 0 THEN 'freeze' ELSE s.kind END AS kind, COUNT(*) AS marks
  FROM unstuck_breakers b
  JOIN unstuck_stucks s ON s.tenant = b.tenant AND s.workflow = b.workflow AND s.id > b.cleared_upto
 WHERE b.tenant = :tenant AND b.workflow = :workflow AND s.at > (SELECT unstuck_now()) - CAST(:span AS BIGINT)
 GROUP BY s.kind, s.is_proven

-- name: count_stucks_of_all
-- As count_stucks, by tenants; under the lock of the breaker that they have in common.
SELECT s.tenant, CASE WHEN s.is_proven = 0 THEN 'freeze' ELSE s.kind END AS kind, COUNT(*) AS marks
  FROM unstuck_breakers b
  JOIN unstuck_stucks s ON s.tenant = b.tenant AND s.workflow = b.workflow AND s.id > b.cleared_upto
 WHERE b.workflow = :workflow AND s.at > (SELECT unstuck_now()) - CAST(:span AS BIGINT)
 GROUP BY s.tenant, s.kind, s.is_proven

-- name: marks_of
-- Those that count_stucks counts, the newest first, each with the job that left it, if it is kept.
SELECT s.at, CASE WHEN s.is_proven = 0 THEN 'freeze' ELSE s.kind END AS kind, j.uid
  FROM unstuck_breakers b
  JOIN unstuck_stucks s ON s.tenant = b.tenant AND s.workflow = b.workflow AND s.id > b.cleared_upto
  LEFT JOIN unstuck_jobs j ON j.id = s.job
 WHERE b.tenant = :tenant AND b.workflow = :workflow AND s.at > (SELECT unstuck_now()) - CAST(:span AS BIGINT)
 ORDER BY s.id DESC
 LIMIT :most

-- name: clear_window
UPDATE unstuck_breakers
   SET cleared_upto = COALESCE((SELECT MAX(s.id) FROM unstuck_stucks s
                                 WHERE s.tenant = unstuck_breakers.tenant AND s.workflow = unstuck_breakers.workflow),
                               cleared_upto)
 WHERE workflow = :workflow AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))

-- name: workflows_of_jobs
SELECT id AS job, tenant, workflow FROM unstuck_jobs WHERE id {in :jobs BIGINT}

-- name: forget_stucks
DELETE FROM unstuck_stucks
 WHERE id IN (SELECT id FROM unstuck_stucks WHERE at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) ORDER BY at LIMIT :batch OFFSET :past)
