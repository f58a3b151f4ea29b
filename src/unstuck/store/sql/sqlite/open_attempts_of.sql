SELECT a.job, a.token, a.claim
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value ->> 'job' AND a.token = r.value ->> 'token' AND a.claim = r.value ->> 'claim'
