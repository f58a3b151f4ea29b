-- Of each of these jobs what its present run asked for last. Without the answers themselves, each of which may be large: they are read with the journal.
SELECT w.job, w.run, w.key, w.kind, w.name, w.until_at, w.answer, w.answered_at, w.by, w.comment
  FROM unnest(CAST(:jobs AS BIGINT[])) AS r (job)
 CROSS JOIN LATERAL (SELECT id, run FROM unstuck_jobs WHERE id = r.job LIMIT 1) AS j
 CROSS JOIN LATERAL (
       SELECT * FROM unstuck_waits WHERE job = j.id AND run = j.run ORDER BY token DESC LIMIT 1) AS w
