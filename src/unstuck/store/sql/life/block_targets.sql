UPDATE unstuck_targets AS t
   SET blocked_by = r.job, blocked_at = r.at
  FROM {rows :rows AS r (target BIGINT, job BIGINT, at BIGINT)}
 WHERE t.id = r.target AND t.head = r.job
