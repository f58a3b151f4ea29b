-- How attempts ended that are no longer open: the last event under each token that is no claim and no request.
SELECT e.job, e.token, e.kind, e.data
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, token BIGINT)
  JOIN unstuck_events e ON e.job = r.job AND e.token = r.token
 WHERE e.kind NOT IN ('submitted', 'claimed', 'requested')
 ORDER BY e.job, e.n
