-- What WAITING jobs wait for and has not come: one row each, none for a job whose answer is there. Only the wait that a
-- run asked for last can be open: the others of a long loop are not read.
SELECT w.*
  FROM {list :jobs AS r (job BIGINT)}
  {by_key unstuck_jobs AS j ON j.id = r.job AND j.state = 'WAITING'}
  {by_key unstuck_waits AS w ON w.job = j.id AND w.run = j.run
      AND w.key = (SELECT o.key FROM unstuck_waits o WHERE o.job = j.id AND o.run = j.run ORDER BY o.token DESC LIMIT 1)}
 WHERE w.answer IS NULL
 ORDER BY w.job
