-- Which of these attempts are open, without a lock: what a lock skipped and this finds is held by somebody else.
SELECT found.job, found.token, found.claim, found.worker
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, token BIGINT, claim TEXT)
 CROSS JOIN LATERAL (
       SELECT a.job, a.token, a.claim, a.worker
         FROM unstuck_running AS a
        WHERE a.job = r.job AND a.token = r.token AND a.claim = r.claim
        LIMIT 1) AS found
