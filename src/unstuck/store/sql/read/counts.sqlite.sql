-- Jobs by where they are, on these routes of a tenant. Each count stops at the ceiling, so that it costs the same on a full
-- table; is_cut says that it did where not all that was looked at counts. OLDEST is no count: when the job fell due
-- that has waited longest, of those that are next on their routes.
-- IN and INDEXED BY: a join lets SQLite read a whole index first, for a Bloom filter, and its guess of an index may be a wide one.
WITH mine AS MATERIALIZED (SELECT value AS route FROM json_each(:routes))
SELECT 'READY' AS name, COUNT(*) AS jobs, 0 AS is_cut
  FROM (SELECT 1 FROM unstuck_ready WHERE route IN (SELECT route FROM mine) LIMIT :ceiling)
 UNION ALL
SELECT 'LATER', COUNT(*), 0
  FROM (SELECT 1
          FROM unstuck_timers INDEXED BY unstuck_timers_route
         WHERE route IN (SELECT route FROM mine) AND kind = 'start'
         LIMIT :ceiling)
 UNION ALL
SELECT 'LINE', COUNT(*), 0
  FROM (SELECT 1 FROM unstuck_line INDEXED BY unstuck_line_route WHERE route IN (SELECT route FROM mine) LIMIT :ceiling)
 UNION ALL
SELECT 'COMPLETED', COUNT(*), 0
  FROM (SELECT 1
          FROM unstuck_done INDEXED BY unstuck_done_route
         WHERE route IN (SELECT route FROM mine) AND state = 'COMPLETED'
         LIMIT :ceiling)
 UNION ALL
SELECT 'FAILED', COUNT(*), 0
  FROM (SELECT 1
          FROM unstuck_done INDEXED BY unstuck_done_route
         WHERE route IN (SELECT route FROM mine) AND state = 'FAILED'
         LIMIT :ceiling)
 UNION ALL
SELECT 'TIMEOUT', COUNT(*), 0
  FROM (SELECT 1
          FROM unstuck_done INDEXED BY unstuck_done_route
         WHERE route IN (SELECT route FROM mine) AND state = 'TIMEOUT'
         LIMIT :ceiling)
 UNION ALL
SELECT 'CANCELLED', COUNT(*), 0
  FROM (SELECT 1
          FROM unstuck_done INDEXED BY unstuck_done_route
         WHERE route IN (SELECT route FROM mine) AND state = 'CANCELLED'
         LIMIT :ceiling)
 UNION ALL
SELECT 'DEAD', COUNT(*), 0
  FROM (SELECT 1
          FROM unstuck_done INDEXED BY unstuck_done_route
         WHERE route IN (SELECT route FROM mine) AND state = 'DEAD'
         LIMIT :ceiling)
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
  FROM (SELECT 1
          FROM unstuck_line
         WHERE target IN (SELECT id FROM unstuck_targets WHERE tenant = :tenant AND blocked_by IS NOT NULL LIMIT :ceiling)
           AND +route IN (SELECT route FROM mine)
         LIMIT :ceiling)
 UNION ALL
SELECT 'OLDEST', MIN(j.available_at), 0
  FROM mine
 CROSS JOIN unstuck_jobs j
    ON j.id = (SELECT r.job FROM unstuck_ready r WHERE r.route = mine.route ORDER BY r.rank, r.job LIMIT 1)
