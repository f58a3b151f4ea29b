-- FOR SHARE makes the fence hold until the commit: a settle comes again after this, or this finds nothing. What somebody else holds is skipped, so
-- nobody waits here. LATERAL ... LIMIT 1 as in settle_returned.
SELECT found.job, found.token, found.claim
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, token BIGINT, claim TEXT)
 CROSS JOIN LATERAL (
       SELECT a.job, a.token, a.claim
         FROM unstuck_running AS a
        WHERE a.job = r.job AND a.token = r.token AND a.claim = r.claim
        LIMIT 1
          FOR SHARE SKIP LOCKED) AS found
