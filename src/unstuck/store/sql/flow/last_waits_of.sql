-- Of each of these jobs what its present run asked for last. Without the answers themselves, each of which may be large:
-- they are read with the journal.
SELECT w.job, w.run, w.key, w.kind, w.name, w.until_at, w.answer, w.answered_at, w.by, w.comment
  FROM {list :jobs AS r (job BIGINT)}
  {by_key unstuck_jobs AS j ON j.id = r.job}
  {by_key unstuck_waits AS w ON w.job = j.id AND w.run = j.run
      AND w.key = (SELECT o.key FROM unstuck_waits o WHERE o.job = j.id AND o.run = j.run ORDER BY o.token DESC LIMIT 1)}
