-- Each count stops at the ceiling, so that it costs the same on a full table.
SELECT 'QUEUED' AS state, COUNT(*) AS jobs
  FROM (SELECT 1 AS one FROM unstuck_ready WHERE (CAST(:tenant AS TEXT) IS NULL OR route IN (SELECT id FROM unstuck_routes WHERE tenant = CAST(:tenant AS TEXT))) LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'QUEUED', COUNT(*)
  FROM (SELECT 1 AS one
          FROM unstuck_timers
         WHERE kind = 'start'
           AND (CAST(:tenant AS TEXT) IS NULL
                OR EXISTS (SELECT 1 FROM unstuck_jobs j WHERE j.id = unstuck_timers.job AND j.tenant = CAST(:tenant AS TEXT)))
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'RUNNING', COUNT(*)
  FROM (SELECT 1 AS one FROM unstuck_running WHERE (CAST(:tenant AS TEXT) IS NULL OR route IN (SELECT id FROM unstuck_routes WHERE tenant = CAST(:tenant AS TEXT))) LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'PENDING', COUNT(*)
  FROM (SELECT 1 AS one
          FROM unstuck_jobs j
         WHERE j.state = 'PENDING' AND j.state <> 'QUEUED' AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = CAST(:tenant AS TEXT))
           AND NOT EXISTS (SELECT 1 FROM unstuck_running r WHERE r.job = j.id)
           AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id)
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'WAITING', COUNT(*)
  FROM (SELECT 1 AS one
          FROM unstuck_jobs j
         WHERE j.state = 'WAITING' AND j.state <> 'QUEUED' AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = CAST(:tenant AS TEXT))
           AND NOT EXISTS (SELECT 1 FROM unstuck_running r WHERE r.job = j.id)
           AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id)
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'PAUSED', COUNT(*)
  FROM (SELECT 1 AS one
          FROM unstuck_jobs j
         WHERE j.state = 'PAUSED' AND j.state <> 'QUEUED' AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = CAST(:tenant AS TEXT))
           AND NOT EXISTS (SELECT 1 FROM unstuck_running r WHERE r.job = j.id)
           AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id)
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'COMPLETED', COUNT(*)
  FROM (SELECT 1 AS one FROM unstuck_done WHERE state = 'COMPLETED' AND (CAST(:tenant AS TEXT) IS NULL OR route IN (SELECT id FROM unstuck_routes WHERE tenant = CAST(:tenant AS TEXT))) LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'FAILED', COUNT(*)
  FROM (SELECT 1 AS one
          FROM unstuck_done
         WHERE state = 'FAILED' AND state <> 'COMPLETED'
           AND (CAST(:tenant AS TEXT) IS NULL OR route IN (SELECT id FROM unstuck_routes WHERE tenant = CAST(:tenant AS TEXT)))
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'TIMEOUT', COUNT(*)
  FROM (SELECT 1 AS one
          FROM unstuck_done
         WHERE state = 'TIMEOUT' AND state <> 'COMPLETED'
           AND (CAST(:tenant AS TEXT) IS NULL OR route IN (SELECT id FROM unstuck_routes WHERE tenant = CAST(:tenant AS TEXT)))
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'CANCELLED', COUNT(*)
  FROM (SELECT 1 AS one
          FROM unstuck_done
         WHERE state = 'CANCELLED' AND state <> 'COMPLETED'
           AND (CAST(:tenant AS TEXT) IS NULL OR route IN (SELECT id FROM unstuck_routes WHERE tenant = CAST(:tenant AS TEXT)))
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'DEAD', COUNT(*)
  FROM (SELECT 1 AS one
          FROM unstuck_done
         WHERE state = 'DEAD' AND state <> 'COMPLETED'
           AND (CAST(:tenant AS TEXT) IS NULL OR route IN (SELECT id FROM unstuck_routes WHERE tenant = CAST(:tenant AS TEXT)))
         LIMIT :ceiling) AS counted
