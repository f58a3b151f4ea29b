-- Jobs by where they are, on these routes of a tenant. Each count stops at the ceiling, so that it costs the same on a full
-- table; is_cut says that it did where not all that was looked at counts. OLDEST is no count: when the job fell due
-- that has waited longest, of those that are next on their routes.
-- LATERAL … LIMIT: one short index scan per route. ORDER BY what only the index gives, and a pair compared with itself where
-- that is the whole index: a planner that expects as much on every route would read the table for one that has nothing.
WITH mine AS MATERIALIZED (SELECT route FROM unnest(CAST(:routes AS BIGINT[])) AS given (route))
SELECT 'READY' AS name, COUNT(*) AS jobs, 0 AS is_cut
  FROM (SELECT 1 AS one
          FROM mine
         CROSS JOIN LATERAL (SELECT 1 AS one FROM unstuck_ready r WHERE r.route = mine.route ORDER BY r.rank LIMIT :ceiling) AS found
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'LATER', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM mine
         CROSS JOIN LATERAL (SELECT 1 AS one
                               FROM unstuck_timers s
                              WHERE s.kind = 'start' AND s.route = mine.route
                              ORDER BY s.job
                              LIMIT :ceiling) AS found
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'LINE', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM mine
         CROSS JOIN LATERAL (SELECT 1 AS one
                               FROM unstuck_line l
                              WHERE l.route = mine.route
                              ORDER BY l.job
                              LIMIT :ceiling) AS found
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'COMPLETED', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM mine
         CROSS JOIN LATERAL (SELECT 1 AS one
                               FROM unstuck_done d
                              WHERE (d.route, d.state) >= (mine.route, 'COMPLETED') AND (d.route, d.state) <= (mine.route, 'COMPLETED')
                              ORDER BY d.route, d.state
                              LIMIT :ceiling) AS found
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'FAILED', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM mine
         CROSS JOIN LATERAL (SELECT 1 AS one
                               FROM unstuck_done d
                              WHERE (d.route, d.state) >= (mine.route, 'FAILED') AND (d.route, d.state) <= (mine.route, 'FAILED')
                              ORDER BY d.route, d.state
                              LIMIT :ceiling) AS found
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'TIMEOUT', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM mine
         CROSS JOIN LATERAL (SELECT 1 AS one
                               FROM unstuck_done d
                              WHERE (d.route, d.state) >= (mine.route, 'TIMEOUT') AND (d.route, d.state) <= (mine.route, 'TIMEOUT')
                              ORDER BY d.route, d.state
                              LIMIT :ceiling) AS found
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'CANCELLED', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM mine
         CROSS JOIN LATERAL (SELECT 1 AS one
                               FROM unstuck_done d
                              WHERE (d.route, d.state) >= (mine.route, 'CANCELLED') AND (d.route, d.state) <= (mine.route, 'CANCELLED')
                              ORDER BY d.route, d.state
                              LIMIT :ceiling) AS found
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'DEAD', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM mine
         CROSS JOIN LATERAL (SELECT 1 AS one
                               FROM unstuck_done d
                              WHERE (d.route, d.state) >= (mine.route, 'DEAD') AND (d.route, d.state) <= (mine.route, 'DEAD')
                              ORDER BY d.route, d.state
                              LIMIT :ceiling) AS found
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'RUNNING', COUNT(*), 0
  FROM (SELECT 1 AS one FROM unstuck_running r WHERE r.route IN (SELECT route FROM mine) LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'PENDING', COUNT(one), CASE WHEN COUNT(*) >= :ceiling THEN 1 ELSE 0 END
  FROM (SELECT CASE WHEN (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
                         AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT)) THEN 1 END AS one
          FROM unstuck_jobs
         WHERE tenant = :tenant AND state = 'PENDING' AND state <> 'QUEUED'
         LIMIT :ceiling) AS resting
 UNION ALL
SELECT 'WAITING', COUNT(one), CASE WHEN COUNT(*) >= :ceiling THEN 1 ELSE 0 END
  FROM (SELECT CASE WHEN (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
                         AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT)) THEN 1 END AS one
          FROM unstuck_jobs
         WHERE tenant = :tenant AND state = 'WAITING' AND state <> 'QUEUED'
         LIMIT :ceiling) AS resting
 UNION ALL
SELECT 'PAUSED', COUNT(one), CASE WHEN COUNT(*) >= :ceiling THEN 1 ELSE 0 END
  FROM (SELECT CASE WHEN (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
                         AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT)) THEN 1 END AS one
          FROM unstuck_jobs
         WHERE tenant = :tenant AND state = 'PAUSED' AND state <> 'QUEUED'
         LIMIT :ceiling) AS resting
 UNION ALL
SELECT 'BLOCKED', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM (SELECT id FROM unstuck_targets WHERE tenant = :tenant AND blocked_by IS NOT NULL LIMIT :ceiling) AS blocked
         CROSS JOIN LATERAL (SELECT l.route FROM unstuck_line l WHERE l.target = blocked.id ORDER BY l.place LIMIT :ceiling) AS found
         WHERE found.route IN (SELECT route FROM mine)
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'OLDEST', MIN(j.available_at), 0
  FROM mine
 CROSS JOIN LATERAL (SELECT r.job FROM unstuck_ready r WHERE r.route = mine.route ORDER BY r.rank, r.job LIMIT 1) AS first
  JOIN unstuck_jobs j ON j.id = first.job
