SELECT r.job
  FROM {rows :rows AS r (route BIGINT, rank BIGINT, job BIGINT)}
 WHERE (SELECT 1 FROM unstuck_ready t WHERE t.route = r.route AND t.rank = r.rank AND t.job = r.job) = 1
