-- No further than :most of each.
SELECT r.job, (SELECT COUNT(*) FROM (SELECT 1 FROM unstuck_steps s WHERE s.job = r.job LIMIT :most) AS counted) AS steps
  FROM {list :jobs AS r (job BIGINT)}
