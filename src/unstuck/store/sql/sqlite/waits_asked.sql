-- Without the answers themselves, each of which may be large: they are read with the journal.
SELECT w.job, w.run, w.key, w.kind, w.name, w.until_at, w.answer, w.answered_at, w.by, w.comment
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_waits w ON w.job = r.value ->> 'job' AND w.run = r.value ->> 'run' AND w.key = r.value ->> 'key'
