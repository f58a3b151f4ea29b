UPDATE unstuck_targets AS t
   SET head = NULL, head_place = NULL, blocked_by = NULL, blocked_at = NULL
  FROM {rows :rows AS r (target BIGINT, job BIGINT)}
 WHERE t.id = r.target AND t.head = r.job
