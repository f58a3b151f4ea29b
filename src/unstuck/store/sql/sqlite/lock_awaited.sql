-- With one writer a look is as good as a lock.
SELECT DISTINCT a.job
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_dependencies d ON d.job = r.value
  CROSS JOIN unstuck_running a ON a.job = d.on_job
