-- RETURNING knows no alias here.
UPDATE unstuck_waits
   SET answer = r.value ->> 'answer', payload = r.value ->> 'payload', by = r.value ->> 'by', answered_at = unstuck_now()
  FROM json_each(:rows) AS r
 WHERE unstuck_waits.job = r.value ->> 'job' AND unstuck_waits.run = r.value ->> 'run' AND unstuck_waits.key = r.value ->> 'key'
   AND answer IS NULL
RETURNING *
