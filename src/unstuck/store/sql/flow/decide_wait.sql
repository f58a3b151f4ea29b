-- A job has one open wait at most, of its present run.
UPDATE unstuck_waits
   SET answer = :answer, by = :by, comment = :comment, answered_at = unstuck_now()
 WHERE job = :job AND kind = 'approval' AND answer IS NULL AND (CAST(:key AS TEXT) IS NULL OR key = CAST(:key AS TEXT))
RETURNING *
