-- How attempts ended that are no longer open: the last event under each token that is no claim and no request.
SELECT e.job, e.token, e.kind, e.data
  FROM {rows :rows AS r (job BIGINT, token BIGINT)}
  {all_by_key unstuck_events AS e ON e.job = r.job AND e.token = r.token AND e.kind NOT IN ('submitted', 'claimed', 'requested')}
 ORDER BY e.job, e.number
