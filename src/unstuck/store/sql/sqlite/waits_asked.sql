SELECT w.*
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_waits w ON w.job = r.value ->> 'job' AND w.run = r.value ->> 'run' AND w.key = r.value ->> 'key'
