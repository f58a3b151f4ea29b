-- Before this an attempt has no limit: it counts from the start of its handler. A request's grace still ends when it would have.
-- What somebody else holds is skipped, and told again with the next beat. The plus keeps SQLite from walking all of the worker's
-- attempts for each row.
WITH begun AS MATERIALIZED (
    SELECT r.job, r.at
      FROM {rows :rows AS r (job BIGINT, at BIGINT)}
    {lock JOIN unstuck_running a ON a.job = r.job
     WHERE a.worker = :worker AND a.started_at IS NULL
     ORDER BY a.job
       FOR UPDATE OF a SKIP LOCKED}
)
UPDATE unstuck_running AS a
   SET started_at = begun.at,
       overdue_at = CASE WHEN a.request IS NULL OR a.request = 'drain' THEN begun.at + p.timeout_us + p.grace_us ELSE a.overdue_at END
  FROM begun, unstuck_policies p
 WHERE a.job = begun.job AND {sqlite +}a.worker = :worker AND a.started_at IS NULL AND p.id = a.policy
