UPDATE unstuck_targets AS t
   SET head = NULL, head_place = NULL, blocked_by = NULL, blocked_at = NULL
  FROM json_each(:rows) AS r
 WHERE t.id = r.value ->> 'target' AND t.head = r.value ->> 'job'
