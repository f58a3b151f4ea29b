-- Before this an attempt has no limit: it counts from the start of its handler. A request's grace still ends when it would have.
UPDATE unstuck_running AS a
   SET started_at = r.at,
       overdue_at = CASE WHEN a.request IS NULL OR a.request = 'drain' THEN r.at + p.timeout_us + p.grace_us ELSE a.overdue_at END
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, at BIGINT), unstuck_policies p
 WHERE a.job = r.job AND a.worker = :worker AND a.started_at IS NULL AND p.id = a.policy
