-- Jobs of all tenants by where they are; each count stops at the ceiling. No index tells completed jobs from others, nor
-- resting ones by their state alone: of these only so many are looked at, and is_cut says when there were more.
SELECT 'READY' AS name, COUNT(*) AS jobs, 0 AS is_cut FROM (SELECT 1 AS one FROM unstuck_ready LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'LATER', COUNT(*), 0 FROM (SELECT 1 AS one FROM unstuck_timers WHERE kind = 'start' LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'LINE', COUNT(*), 0 FROM (SELECT 1 AS one FROM unstuck_line LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'RUNNING', COUNT(*), 0 FROM (SELECT 1 AS one FROM unstuck_running LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'FAILED', COUNT(*), 0 FROM (SELECT 1 AS one FROM unstuck_done WHERE state = 'FAILED' AND state <> 'COMPLETED' LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'TIMEOUT', COUNT(*), 0 FROM (SELECT 1 AS one FROM unstuck_done WHERE state = 'TIMEOUT' AND state <> 'COMPLETED' LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'CANCELLED', COUNT(*), 0 FROM (SELECT 1 AS one FROM unstuck_done WHERE state = 'CANCELLED' AND state <> 'COMPLETED' LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'DEAD', COUNT(*), 0 FROM (SELECT 1 AS one FROM unstuck_done WHERE state = 'DEAD' AND state <> 'COMPLETED' LIMIT :ceiling) AS counted
 UNION ALL
SELECT 'COMPLETED', COUNT(*),
       CASE WHEN COUNT(*) < :ceiling
                 AND (SELECT COUNT(*) FROM (SELECT 1 AS one FROM unstuck_done ORDER BY job DESC LIMIT 3 * :ceiling) AS ended)
                     >= 3 * :ceiling
            THEN 1 ELSE 0 END
  FROM (SELECT 1 AS one
          FROM (SELECT state FROM unstuck_done ORDER BY job DESC LIMIT 3 * :ceiling) AS ended
         WHERE state = 'COMPLETED'
         LIMIT :ceiling) AS counted
 UNION ALL
SELECT state, COUNT(*),
       CASE WHEN (SELECT COUNT(*) FROM (SELECT 1 AS one FROM unstuck_jobs WHERE state <> 'QUEUED' LIMIT 3 * :ceiling) AS rested)
                 >= 3 * :ceiling
            THEN 1 ELSE 0 END
  FROM (SELECT state FROM unstuck_jobs WHERE state <> 'QUEUED' ORDER BY tenant, state, id LIMIT 3 * :ceiling) AS resting
 GROUP BY state
 UNION ALL
SELECT 'BLOCKED', COUNT(*), 0
  FROM (SELECT 1 AS one
          FROM (SELECT id FROM unstuck_targets WHERE blocked_by IS NOT NULL ORDER BY tenant, blocked_at LIMIT :ceiling) AS blocked
          JOIN unstuck_line l ON l.target = blocked.id
         LIMIT :ceiling) AS counted
