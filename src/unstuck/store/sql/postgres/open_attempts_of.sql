-- FOR SHARE makes the fence hold until the commit: a settle waits for this, or this finds nothing. The rows come sorted by
-- job, as every settle locks them: two batches never wait for each other in a circle. LATERAL ... LIMIT 1 as in settle_returned.
SELECT found.job, found.token, found.claim
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, token BIGINT, claim TEXT)
 CROSS JOIN LATERAL (
       SELECT a.job, a.token, a.claim
         FROM unstuck_running AS a
        WHERE a.job = r.job AND a.token = r.token AND a.claim = r.claim
        LIMIT 1
          FOR SHARE) AS found
