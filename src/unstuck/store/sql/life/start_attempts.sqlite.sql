-- Before this an attempt has no limit: it counts from the start of its handler. A request's grace still ends when it would have.
-- The plus keeps SQLite from walking all of the worker's attempts for each row.
UPDATE unstuck_running AS a
   SET started_at = r.value ->> 'at',
       overdue_at = CASE WHEN a.request IS NULL OR a.request = 'drain'
                         THEN (r.value ->> 'at') + p.timeout_us + p.grace_us ELSE a.overdue_at END
  FROM json_each(:rows) AS r, unstuck_policies p
 WHERE a.job = r.value ->> 'job' AND +a.worker = :worker AND a.started_at IS NULL AND p.id = a.policy
