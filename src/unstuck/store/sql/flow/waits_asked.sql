-- Without the answers themselves, each of which may be large: they are read with the journal.
SELECT w.job, w.run, w.key, w.kind, w.name, w.until_at, w.answer, w.answered_at, w.by, w.comment
  FROM {rows :rows AS r (job BIGINT, run BIGINT, key TEXT)}
  {by_key unstuck_waits AS w ON w.job = r.job AND w.run = r.run AND w.key = r.key}
