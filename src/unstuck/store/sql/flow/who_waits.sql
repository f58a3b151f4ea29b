-- Those of these jobs that still wait for others.
SELECT r.job
  FROM {list :jobs AS r (job BIGINT)}
 WHERE (SELECT 1 FROM unstuck_dependencies d WHERE d.job = r.job LIMIT 1) = 1
