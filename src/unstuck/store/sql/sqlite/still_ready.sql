SELECT t.job
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_ready t ON t.route = r.value ->> 'route' AND t.rank = r.value ->> 'rank' AND t.job = r.value ->> 'job'
