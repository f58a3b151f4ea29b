UPDATE unstuck_targets AS t
   SET blocked_by = r.value ->> 'job', blocked_at = r.value ->> 'at'
  FROM json_each(:rows) AS r
 WHERE t.id = r.value ->> 'target' AND t.head = r.value ->> 'job'
