-- FOR SHARE makes the fence hold until the commit: a settle comes again after this, or this finds nothing. What somebody
-- else holds is skipped, so nobody waits here.
SELECT a.job, a.token, a.claim
  FROM {rows :rows AS r (job BIGINT, token BIGINT, claim TEXT)}
  {by_key unstuck_running AS a ON a.job = r.job AND a.token = r.token AND a.claim = r.claim FOR SHARE SKIP LOCKED}
