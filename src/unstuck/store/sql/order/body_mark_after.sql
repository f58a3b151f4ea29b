-- Only the body mark of this very attempt: while it stands, the job cannot have begun another.
SELECT h.job, h.worker, h.target
  FROM unstuck_body_marks h
  JOIN unstuck_jobs j ON j.id = h.job
 WHERE h.job = :job AND h.worker = :worker AND j.token = :token
