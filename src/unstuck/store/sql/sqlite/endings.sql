-- How attempts ended that are no longer open: the events under each token that are no claim and no request.
SELECT e.job, e.token, e.kind, e.data
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_events e ON e.job = r.value ->> 'job' AND e.token = r.value ->> 'token'
 WHERE e.kind NOT IN ('submitted', 'claimed', 'requested')
 ORDER BY e.job, e.n
