-- Without the answers themselves, each of which may be large: they are read with the journal.
SELECT w.job, w.run, w.key, w.kind, w.name, w.until_at, w.answer, w.answered_at, w.by, w.comment
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, run BIGINT, key TEXT)
 CROSS JOIN LATERAL (SELECT * FROM unstuck_waits AS w WHERE w.job = r.job AND w.run = r.run AND w.key = r.key LIMIT 1) AS w
