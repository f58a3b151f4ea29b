-- Jobs that must not start because an old body of them may still live.

-- name: body_mark_of
SELECT job, worker, target FROM unstuck_body_marks WHERE job = :job AND worker = :worker

-- name: body_mark_after
-- Only the body mark of this very attempt: while it stands, the job cannot have begun another.
SELECT h.job, h.worker, h.target
  FROM unstuck_body_marks h
  JOIN unstuck_jobs j ON j.id = h.job
 WHERE h.job = :job AND h.worker = :worker AND j.token = :token

-- name: body_marks_to_lift
SELECT h.job, h.worker, h.target
  FROM unstuck_body_marks h
  LEFT JOIN unstuck_workers w ON w.id = h.worker
 WHERE h.job {in :jobs BIGINT} AND (w.id IS NULL OR w.lease_until <= unstuck_now() - :margin)
 ORDER BY h.job

-- name: liftable_body_marks
SELECT h.job
  FROM unstuck_body_marks h
  LEFT JOIN unstuck_workers w ON w.id = h.worker
 WHERE h.job > :after AND (w.id IS NULL OR w.lease_until <= unstuck_now() - :margin)
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'body_mark' AND q.item = h.job)
 ORDER BY h.job
 LIMIT :batch

-- name: disown_body_marks
-- Nobody's: the next sweep lifts them, whoever lives.
UPDATE unstuck_body_marks AS h
   SET worker = 0
  FROM {rows :rows AS r (job BIGINT, worker BIGINT)}
 WHERE h.job = r.job AND h.worker = r.worker

-- name: drop_body_marks
DELETE FROM unstuck_body_marks {matching :rows (job BIGINT, worker BIGINT)}

-- name: dead_body_marks
-- Those that a sweep should have lifted by :late ago.
SELECT COUNT(*) AS marks
  FROM (SELECT 1 AS one
          FROM unstuck_body_marks h
          LEFT JOIN unstuck_workers w ON w.id = h.worker
         WHERE w.id IS NULL OR w.lease_until <= unstuck_now() - CAST(:late AS BIGINT)
         LIMIT :most) AS dead
