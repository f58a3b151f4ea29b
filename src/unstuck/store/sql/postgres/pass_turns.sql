UPDATE unstuck_targets AS t
   SET head = NULL, head_place = NULL, blocked_by = NULL, blocked_at = NULL
  FROM json_to_recordset(CAST(:rows AS json)) AS r (target BIGINT, job BIGINT)
 WHERE t.id = r.target AND t.head = r.job
