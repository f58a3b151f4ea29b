-- Of each of these runs, beside the one of this key; no further than :most.
SELECT r.value ->> 'job' AS job,
       (SELECT COUNT(*)
          FROM (SELECT 1 FROM unstuck_waits w
                 WHERE w.job = r.value ->> 'job' AND w.run = r.value ->> 'run' AND w.key <> r.value ->> 'key' LIMIT :most) AS counted) AS waits
  FROM json_each(:rows) AS r
