-- With one writer a look is as good as a lock.
SELECT r.value AS id FROM json_each(:jobs) AS r
 UNION
SELECT d.on_job
  FROM json_each(:newcomers) AS r
  CROSS JOIN unstuck_dependencies d ON d.job = r.value
