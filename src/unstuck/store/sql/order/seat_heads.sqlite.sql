UPDATE unstuck_targets AS t
   SET head = r.value ->> 'job', head_place = r.value ->> 'place'
  FROM json_each(:rows) AS r
 WHERE t.id = r.value ->> 'target'
