-- The first of a route, those that have waited long enough; but for those that could not be moved alone (CASE as in due_timers).
SELECT j.id AS job
  FROM (SELECT r.job
          FROM unstuck_ready r
         WHERE r.route = :route
           AND CASE WHEN (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'orphan' AND q.item = r.job) IS NULL THEN TRUE ELSE FALSE END
         ORDER BY r.rank, r.job
         LIMIT :batch) AS first
 CROSS JOIN unstuck_jobs j
 WHERE j.id = first.job AND j.available_at <= (SELECT unstuck_now()) - CAST(:age AS BIGINT)
