-- The same as on PostgreSQL.
-- Limits whose cost does not grow: starts counted in slices of time, and what limits a route found by key.

-- A row is so many starts of one slice, a hundredth of the limit's window; `at` is the slice's end, so that none of them is
-- counted for less than the window. (Of a rate of a hundred or fewer every start is a slice by itself.) until_at: when a sweep
-- should look at the row; who changes the limit's window makes that wrong, so the sweep looks at the limit as well.
ALTER TABLE unstuck_starts ADD COLUMN starts INTEGER NOT NULL DEFAULT 1;
ALTER TABLE unstuck_starts ADD COLUMN until_at INTEGER NOT NULL DEFAULT 0;

-- job 0: no job has this number, so a slice's row is nobody else's.
INSERT INTO unstuck_starts (limit_id, bucket, at, job, starts, until_at)
SELECT limit_id, bucket, slice, 0, COUNT(*), slice + per_us
  FROM (SELECT s.limit_id, s.bucket, l.per_us,
               CASE WHEN l.rate <= 100 THEN s.at ELSE (s.at / MAX(1, l.per_us / 100) + 1) * MAX(1, l.per_us / 100) END AS slice
          FROM unstuck_starts s
          CROSS JOIN unstuck_limits l ON l.id = s.limit_id
         WHERE l.rate IS NOT NULL)
 GROUP BY limit_id, bucket, slice, per_us;
DELETE FROM unstuck_starts WHERE job <> 0;
CREATE INDEX unstuck_starts_until ON unstuck_starts (until_at);

CREATE INDEX unstuck_running_route ON unstuck_running (route);

-- How far each limit of a route is used up, by one step per route on which something runs. Bodies are open attempts, and jobs under a hold, whose old body may still live. Whether
-- a limit counts another route beside that for which it was found depends on nothing but the bucket and its tenant: what has a row
-- of its own is another bucket. first_at: with whose leaving there is room again. Ask for one route at a time.
DROP VIEW unstuck_gates;
DROP VIEW unstuck_limit_room;
CREATE VIEW unstuck_limit_room AS
SELECT l.*,
       CASE WHEN l.concurrency IS NULL THEN 0 ELSE
       (WITH RECURSIVE busy (route) AS (
            SELECT MIN(route) FROM unstuck_running
             UNION ALL
            SELECT (SELECT MIN(a.route) FROM unstuck_running a WHERE a.route > busy.route) FROM busy WHERE busy.route IS NOT NULL)
        SELECT COALESCE(SUM((SELECT COUNT(*) FROM unstuck_running a WHERE a.route = m.id)), 0)
          FROM busy CROSS JOIN unstuck_routes m ON m.id = busy.route
         WHERE l.tenant IN (m.tenant, '*')
           AND l.bucket = CASE l.kind WHEN 'queue' THEN m.queue WHEN 'workflow' THEN m.workflow
                                      WHEN 'tenant' THEN m.tenant ELSE m.limit_key END)
       + (SELECT COUNT(*) FROM unstuck_holds h CROSS JOIN unstuck_jobs j ON j.id = h.job CROSS JOIN unstuck_routes m ON m.id = j.route
           WHERE l.tenant IN (m.tenant, '*')
             AND l.bucket = CASE l.kind WHEN 'queue' THEN m.queue WHEN 'workflow' THEN m.workflow
                                        WHEN 'tenant' THEN m.tenant ELSE m.limit_key END) END AS running,
       (SELECT COALESCE(SUM(s.starts), 0) FROM unstuck_starts s
         WHERE s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > (SELECT unstuck_now()) - l.per_us) AS started,
       (SELECT MIN(later.at)
          FROM (SELECT s.at, SUM(SUM(s.starts)) OVER (ORDER BY s.at DESC) - SUM(s.starts) AS left_over
                  FROM unstuck_starts s
                 WHERE s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > (SELECT unstuck_now()) - l.per_us
                 GROUP BY s.at) AS later
         WHERE later.left_over < l.rate) AS first_at
  FROM unstuck_route_limits l;

-- As before.
CREATE VIEW unstuck_gates AS
SELECT r.id AS route, 'queue_paused' AS code, 0 AS is_limit, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER) AS used, CAST(NULL AS INTEGER) AS most, CAST(NULL AS INTEGER) AS free_at,
       CAST(NULL AS INTEGER) AS probe
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'queue' AND p.name = r.queue AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'workflow_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER)
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'workflow' AND p.name = r.workflow AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'tenant_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER)
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'tenant' AND p.name = r.tenant AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT route, 'concurrency_limit', 1, kind, bucket, tenant, NULL, NULL, set_by, NULL, running, concurrency, NULL, NULL
  FROM unstuck_limit_room
 WHERE running >= concurrency
 UNION ALL
SELECT route, 'rate_limited', 1, kind, bucket, tenant, NULL, NULL, set_by, NULL, started, rate, first_at + per_us, NULL
  FROM unstuck_limit_room
 WHERE started >= rate
 UNION ALL
SELECT r.id, 'blacklisted', 0, 'workflow', b.workflow, b.tenant, b.blacklisted_at, CAST(NULL AS INTEGER), b.blacklisted_by, b.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), b.probe
  FROM unstuck_routes r
  CROSS JOIN unstuck_blacklist b ON b.workflow = r.workflow AND b.tenant IN (r.tenant, '*')
 WHERE b.removed_at IS NULL;
