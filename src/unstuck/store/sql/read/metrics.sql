-- What a scrape of the metrics asks beside what other readers ask. Each count stops somewhere: a scrape costs the same on a full database.

-- name: standing
-- Jobs of all tenants that have not ended (and dead ones), by where they are: together, of the fullest names, of the fullest tenants. Of resting
-- jobs, whose rows are wide, fewer are looked at.
WITH held AS MATERIALIZED (
    SELECT 'READY' AS place, route, COUNT(*) AS jobs FROM (SELECT route FROM unstuck_ready LIMIT :ceiling) AS few_of GROUP BY route
     UNION ALL
    SELECT 'LATER', route, COUNT(*) FROM (SELECT route FROM unstuck_timers WHERE kind = 'start' LIMIT :ceiling) AS few_of GROUP BY route
     UNION ALL
    SELECT 'LINE', route, COUNT(*) FROM (SELECT route FROM unstuck_line LIMIT :ceiling) AS few_of GROUP BY route
     UNION ALL
    SELECT 'RUNNING', route, COUNT(*) FROM (SELECT route FROM unstuck_running LIMIT :ceiling) AS few_of GROUP BY route
     UNION ALL
    SELECT state, route, COUNT(*)
      FROM (SELECT state, route FROM unstuck_jobs WHERE state <> 'QUEUED' ORDER BY tenant, state, id LIMIT :few) AS few_of
     GROUP BY state, route
     UNION ALL
    SELECT 'DEAD', route, COUNT(*)
      FROM (SELECT route FROM unstuck_done WHERE state = 'DEAD' AND state <> 'COMPLETED' ORDER BY state, job LIMIT :few) AS few_of
     GROUP BY route
), named AS MATERIALIZED (
    SELECT held.place, r.tenant, r.queue, r.workflow, SUM(held.jobs) AS jobs
      FROM held
      {by_key unstuck_routes AS r ON r.id = held.route}
     GROUP BY held.place, r.tenant, r.queue, r.workflow
)
SELECT 'all' AS per, place, '' AS tenant, '' AS queue, '' AS workflow, SUM(jobs) AS jobs FROM named GROUP BY place
 UNION ALL
SELECT *
  FROM (SELECT 'name' AS per, place, '' AS tenant, queue, workflow, SUM(jobs) AS jobs
          FROM named GROUP BY place, queue, workflow ORDER BY 6 DESC LIMIT :most) AS fullest
 UNION ALL
SELECT *
  FROM (SELECT 'tenant' AS per, place, tenant, '' AS queue, '' AS workflow, SUM(jobs) AS jobs
          FROM named GROUP BY place, tenant ORDER BY 6 DESC LIMIT :most) AS fullest_tenants

-- name: standing_of
-- The same of one tenant, by its routes: how much others have costs it nothing. USING and ORDER BY as in counts.
WITH held AS MATERIALIZED (
    SELECT 'READY' AS place, mine.route, COUNT(*) AS jobs
      FROM {list :routes AS mine (route BIGINT)}
      {some_by_key unstuck_ready AS r ON r.route = mine.route ORDER BY r.rank LIMIT :ceiling}
     GROUP BY mine.route
     UNION ALL
    SELECT 'LATER', mine.route, COUNT(*)
      FROM {list :routes AS mine (route BIGINT)}
      {some_by_key unstuck_timers AS s USING unstuck_timers_route ON s.kind = 'start' AND s.route = mine.route ORDER BY s.job LIMIT :ceiling}
     GROUP BY mine.route
     UNION ALL
    SELECT 'LINE', mine.route, COUNT(*)
      FROM {list :routes AS mine (route BIGINT)}
      {some_by_key unstuck_line AS l USING unstuck_line_route ON l.route = mine.route ORDER BY l.job LIMIT :ceiling}
     GROUP BY mine.route
     UNION ALL
    SELECT 'RUNNING', r.route, COUNT(*)
      FROM (SELECT route FROM unstuck_running WHERE route {in :routes BIGINT} LIMIT :ceiling) AS r
     GROUP BY r.route
     UNION ALL
    SELECT state, route, COUNT(*)
      FROM (SELECT state, route FROM unstuck_jobs WHERE tenant = :tenant AND state <> 'QUEUED' ORDER BY tenant, state, id LIMIT :few) AS few_of
     GROUP BY state, route
     UNION ALL
    SELECT 'DEAD', mine.route, COUNT(*)
      FROM {list :routes AS mine (route BIGINT)}
      {some_by_key unstuck_done AS d USING unstuck_done_route
                   ON {postgres (d.route, d.state) >= (mine.route, 'DEAD') AND (d.route, d.state) <= (mine.route, 'DEAD')}
                      {sqlite d.route = mine.route AND d.state = 'DEAD'}
                   ORDER BY d.route, d.state LIMIT :few}
     GROUP BY mine.route
), named AS MATERIALIZED (
    SELECT held.place, r.queue, r.workflow, SUM(held.jobs) AS jobs
      FROM held
      {by_key unstuck_routes AS r ON r.id = held.route}
     GROUP BY held.place, r.queue, r.workflow
)
SELECT 'all' AS per, place, '' AS tenant, '' AS queue, '' AS workflow, SUM(jobs) AS jobs FROM named GROUP BY place
 UNION ALL
SELECT *
  FROM (SELECT 'name' AS per, place, '' AS tenant, queue, workflow, SUM(jobs) AS jobs
          FROM named GROUP BY place, queue, workflow ORDER BY 6 DESC LIMIT :most) AS fullest

-- name: past_bound
-- What `overdue` looks at, counted: attempts that nobody recovers or judges, timers that nobody fires. What is in quarantine is known and tried alone. Where a tenant asks,
-- the oldest :looked of each kind are looked at.
WITH RECURSIVE clock AS (
    SELECT unstuck_now() - CAST(:late AS BIGINT) AS late, unstuck_now() AS now
), holder (worker) AS (
    SELECT MIN(worker) FROM unstuck_running
     UNION ALL
    SELECT (SELECT MIN(r.worker) FROM unstuck_running r WHERE r.worker > holder.worker) FROM holder WHERE holder.worker IS NOT NULL
), late AS (
    SELECT * FROM (
        SELECT 'lost' AS bound, r.job
          FROM holder
          JOIN unstuck_workers w ON w.id = holder.worker
          JOIN unstuck_running r ON r.worker = w.id
         WHERE w.lease_until <= (SELECT late FROM clock)
         LIMIT :looked) AS lost
     UNION ALL
    SELECT * FROM (
        SELECT 'limit', a.job
          FROM unstuck_running a
          JOIN unstuck_workers w ON w.id = a.worker
         WHERE a.overdue_at <= (SELECT late FROM clock) - CAST(:backstop AS BIGINT) AND w.lease_until > (SELECT now FROM clock)
         LIMIT :looked) AS backstop
     UNION ALL
    SELECT * FROM (SELECT kind, job FROM unstuck_timers WHERE kind = 'start' AND due_at <= (SELECT late FROM clock) ORDER BY due_at LIMIT :looked) AS start
     UNION ALL
    SELECT * FROM (SELECT kind, job FROM unstuck_timers WHERE kind = 'expire' AND due_at <= (SELECT late FROM clock) ORDER BY due_at LIMIT :looked) AS expire
     UNION ALL
    SELECT * FROM (SELECT kind, job FROM unstuck_timers WHERE kind = 'wait' AND due_at <= (SELECT late FROM clock) ORDER BY due_at LIMIT :looked) AS wait
)
SELECT late.bound, COUNT(*) AS jobs
  FROM late
  {by_key unstuck_jobs AS j ON j.id = late.job}
 WHERE (CAST(:tenant AS TEXT) IS NULL OR j.tenant = CAST(:tenant AS TEXT))
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.item = late.job AND q.duty <> 'target')
 GROUP BY late.bound

-- name: resting_since
-- Since when the longest of them have been PENDING, WAITING or PAUSED, by the last event of each; of so many of each tenant's oldest.
SELECT few_of.state, few_of.queue, MIN(e.at) AS since_at
  FROM (SELECT id, state, queue, event_count
          FROM (SELECT id, state, queue, event_count FROM unstuck_jobs
                 WHERE CAST(:tenant AS TEXT) IS NULL AND state <> 'QUEUED' ORDER BY tenant, state, id LIMIT :looked) AS everywhere
         UNION ALL
        SELECT id, state, queue, event_count
          FROM (SELECT id, state, queue, event_count FROM unstuck_jobs
                 WHERE tenant = CAST(:tenant AS TEXT) AND state <> 'QUEUED' ORDER BY tenant, state, id LIMIT :looked) AS mine) AS few_of
  {by_key unstuck_events AS e ON e.job = few_of.id AND e.number = few_of.event_count}
 GROUP BY few_of.state, few_of.queue
 ORDER BY 3
 LIMIT :most

-- name: standing_troubles
-- Single things that somebody should look at, each counted up to :ceiling; since_at: the oldest of them, where that matters.
SELECT 'notifications' AS what, '' AS kind, COUNT(*) AS number, CAST(NULL AS BIGINT) AS since_at
  FROM (SELECT 1 AS one FROM unstuck_notifications
         WHERE acked_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT)) LIMIT :ceiling) AS open
 UNION ALL
SELECT 'blacklist', '', COUNT(*), NULL
  FROM (SELECT 1 AS one FROM unstuck_blacklist
         WHERE removed_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*')) LIMIT :ceiling) AS active
 UNION ALL
SELECT 'targets', '', COUNT(*), MIN(blocked_at)
  FROM (SELECT blocked_at FROM unstuck_targets
         WHERE blocked_by IS NOT NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
         ORDER BY tenant, blocked_at LIMIT :ceiling) AS blocked
 UNION ALL
SELECT 'approvals', '', COUNT(*), NULL
  FROM (SELECT 1 AS one FROM unstuck_waits
         WHERE answer IS NULL AND kind = 'approval' AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT)) LIMIT :ceiling) AS asked
 UNION ALL
SELECT 'quarantine', aside.duty, COUNT(*), NULL
  FROM (SELECT q.duty
          FROM unstuck_quarantine q
          LEFT JOIN unstuck_jobs j ON j.id = q.item AND q.duty <> 'target'
          LEFT JOIN unstuck_targets t ON t.id = q.item AND q.duty = 'target'
         WHERE CAST(:tenant AS TEXT) IS NULL OR COALESCE(j.tenant, t.tenant) = CAST(:tenant AS TEXT)
         LIMIT :ceiling) AS aside
 GROUP BY aside.duty
 UNION ALL
SELECT 'webhooks', w.state, COUNT(*), NULL
  FROM unstuck_webhooks w
 WHERE w.tenant <> '' AND (CAST(:tenant AS TEXT) IS NULL OR w.tenant = CAST(:tenant AS TEXT))
 GROUP BY w.state
 UNION ALL
SELECT 'deliveries', '', COUNT(*), MIN(waiting.at)
  FROM (SELECT d.at
          FROM unstuck_webhooks w
          JOIN unstuck_deliveries d ON d.webhook = w.id AND d.state = 'WAITING'
         WHERE w.tenant <> '' AND (CAST(:tenant AS TEXT) IS NULL OR w.tenant = CAST(:tenant AS TEXT))
         LIMIT :few) AS waiting
 UNION ALL
SELECT 'dead_letters', letters.reason, COUNT(*), MIN(letters.created_at)
  FROM (SELECT reason, created_at
          FROM (SELECT reason, created_at FROM unstuck_dead_letters WHERE CAST(:tenant AS TEXT) IS NULL ORDER BY id LIMIT :few) AS everywhere
         UNION ALL
        SELECT reason, created_at
          FROM (SELECT reason, created_at FROM unstuck_dead_letters WHERE tenant = CAST(:tenant AS TEXT) ORDER BY id LIMIT :few) AS mine) AS letters
 GROUP BY letters.reason
