-- Nobody's: the next sweep lifts them, whoever lives.
UPDATE unstuck_body_marks AS h
   SET worker = 0
  FROM {rows :rows AS r (job BIGINT, worker BIGINT)}
 WHERE h.job = r.job AND h.worker = r.worker
