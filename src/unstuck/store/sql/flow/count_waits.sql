-- Of each of these runs, beside the one of this key; no further than :most.
SELECT r.job, (SELECT COUNT(*)
                 FROM (SELECT 1 FROM unstuck_waits w WHERE w.job = r.job AND w.run = r.run AND w.key <> r.key LIMIT :most) AS counted) AS waits
  FROM {rows :rows AS r (job BIGINT, run BIGINT, key TEXT)}
