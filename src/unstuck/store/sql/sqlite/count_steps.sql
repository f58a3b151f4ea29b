-- No further than :most of each.
SELECT r.value AS job, (SELECT COUNT(*) FROM (SELECT 1 FROM unstuck_steps s WHERE s.job = r.value LIMIT :most) AS counted) AS steps
  FROM json_each(:jobs) AS r
