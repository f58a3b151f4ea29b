-- What alert rules look at. Each question is bounded, whatever the database holds, and goes along an index.

-- name: recoveries_of_workflows
-- How many lost workers jobs of a workflow were taken from.
SELECT tenant, workflow, COUNT(DISTINCT worker) AS times, SUM(jobs) AS jobs
  FROM (SELECT tenant, workflow, worker, jobs FROM unstuck_recoveries
         WHERE at > (SELECT unstuck_now()) - CAST(:span AS BIGINT) ORDER BY at DESC, id DESC LIMIT :looked) AS lately
 GROUP BY tenant, workflow
HAVING COUNT(DISTINCT worker) >= :least
 ORDER BY 3 DESC, 1, 2
 LIMIT :most

-- name: recoveries_of_workers
SELECT name, COUNT(DISTINCT worker) AS times, SUM(jobs) AS jobs
  FROM (SELECT name, worker, jobs FROM unstuck_recoveries
         WHERE at > (SELECT unstuck_now()) - CAST(:span AS BIGINT) ORDER BY at DESC, id DESC LIMIT :looked) AS lately
 GROUP BY name
HAVING COUNT(DISTINCT worker) >= :least
 ORDER BY 2 DESC, 1
 LIMIT :most

-- name: stucks_of_tenants
SELECT tenant, workflow, COUNT(*) AS stucks
  FROM (SELECT tenant, workflow FROM unstuck_stucks
         WHERE at > (SELECT unstuck_now()) - CAST(:span AS BIGINT) AND kind = 'stuck' ORDER BY at DESC LIMIT :looked) AS lately
 GROUP BY tenant, workflow
 ORDER BY 3 DESC, 1, 2

-- name: ends_of_tenant
SELECT COALESCE(SUM(s.completed + s.failed + s.timeout + s.cancelled + s.dead), 0) AS ends
  FROM unstuck_series s
 WHERE s.tenant = :tenant AND s.step = 60 AND s.at > (SELECT unstuck_now()) - CAST(:span AS BIGINT)

-- name: resting_after
-- The next tenant with jobs at rest, in whatever state.
SELECT tenant FROM unstuck_jobs
 WHERE state <> 'QUEUED' AND tenant > :tenant
 ORDER BY tenant, state, id
 LIMIT 1

-- name: resting_longest
-- Of the first that came, those that have rested since :before at the latest, the longest first; since the last event of each.
SELECT few_of.uid, few_of.workflow, e.at AS since_at
  FROM (SELECT id, uid, workflow, event_count FROM unstuck_jobs
         WHERE tenant = :tenant AND state = :state AND state <> 'QUEUED' ORDER BY tenant, state, id LIMIT :looked) AS few_of
  {by_key unstuck_events AS e ON e.job = few_of.id AND e.number = few_of.event_count}
 WHERE e.at <= (SELECT unstuck_now()) - CAST(:span AS BIGINT)
 ORDER BY e.at, few_of.id

-- name: blocking_tenant
SELECT MIN(tenant) AS tenant FROM unstuck_targets WHERE blocked_by IS NOT NULL AND tenant > :after

-- name: blocked_longest
SELECT few_of.name, few_of.blocked_at, j.uid, j.workflow
  FROM (SELECT name, blocked_at, blocked_by FROM unstuck_targets
         WHERE tenant = :tenant AND blocked_by IS NOT NULL AND blocked_at <= (SELECT unstuck_now()) - CAST(:span AS BIGINT)
         ORDER BY tenant, blocked_at, id LIMIT :looked) AS few_of
  {by_key_or_null unstuck_jobs AS j ON j.id = few_of.blocked_by}
 ORDER BY few_of.blocked_at

-- name: buried_tenant
SELECT MIN(tenant) AS tenant FROM unstuck_dead_letters WHERE tenant > :after

-- name: buried_lately
-- Of the newest.
SELECT workflow, reason, COUNT(*) AS letters, MIN(created_at) AS since_at
  FROM (SELECT workflow, reason, created_at FROM unstuck_dead_letters WHERE tenant = :tenant ORDER BY tenant, id DESC LIMIT :looked) AS newest
 GROUP BY workflow, reason
HAVING COUNT(*) >= :least
 ORDER BY 3 DESC, 1, 2
 LIMIT :most
