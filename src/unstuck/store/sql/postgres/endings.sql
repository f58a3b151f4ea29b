-- How attempts ended that are no longer open: the last event under each token that is no claim and no request. LATERAL ... OFFSET 0: by
-- the job's own events, whatever the statistics say.
SELECT e.job, e.token, e.kind, e.data
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, token BIGINT)
 CROSS JOIN LATERAL (
       SELECT job, n, token, kind, data
         FROM unstuck_events
        WHERE job = r.job AND token = r.token AND kind NOT IN ('submitted', 'claimed', 'requested')
       OFFSET 0) AS e
 ORDER BY e.job, e.n
