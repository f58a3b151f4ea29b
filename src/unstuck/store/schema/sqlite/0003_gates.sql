-- The same as on PostgreSQL.
-- The gates of a route: what shuts all of its jobs out for a while. `fronts`, the claim and `why` read the same view.

-- When a worker whose lease held was last seen to know it. seen_at is when it was registered, which decides who is newest.
ALTER TABLE unstuck_workflows ADD COLUMN known_at INTEGER;
ALTER TABLE unstuck_workflows ADD COLUMN limit_key TEXT;

-- The limits that a claim from a route must count. bucket: what such a limit counts together. A row of one's own wins over that
-- of the family, and this over '*'.
CREATE VIEW unstuck_route_limits AS
SELECT r.id AS route, l.kind AS kind, r.queue AS bucket, l.id AS limit_id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  CROSS JOIN unstuck_limits l ON l.kind = 'queue' AND l.name = r.queue AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
 UNION ALL
SELECT r.id, l.kind, r.workflow, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  CROSS JOIN unstuck_limits l ON l.kind = 'workflow' AND l.name = r.workflow AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
 UNION ALL
SELECT r.id, l.kind, r.tenant, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  CROSS JOIN unstuck_limits l ON l.kind = 'tenant' AND l.name = r.tenant AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
 UNION ALL
SELECT r.id, l.kind, r.tenant, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  CROSS JOIN unstuck_limits l ON l.kind = 'tenant' AND l.name = '*' AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
   AND NOT EXISTS (SELECT 1 FROM unstuck_limits own WHERE (own.concurrency IS NOT NULL OR own.rate IS NOT NULL) AND own.kind = 'tenant' AND own.name = r.tenant)
 UNION ALL
SELECT r.id, l.kind, r.limit_key, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  CROSS JOIN unstuck_limits l ON l.kind = 'key' AND l.name = r.limit_key AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL) AND r.limit_key <> ''
 UNION ALL
SELECT r.id, l.kind, r.limit_key, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  CROSS JOIN unstuck_limits l ON l.kind = 'key' AND l.name = SUBSTR(r.limit_key, 1, INSTR(r.limit_key, ':')) || '*' AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL) AND r.limit_key LIKE '%:%'
   AND NOT EXISTS (SELECT 1 FROM unstuck_limits own WHERE (own.concurrency IS NOT NULL OR own.rate IS NOT NULL) AND own.kind = 'key' AND own.name = r.limit_key AND own.tenant = l.tenant)
 UNION ALL
SELECT r.id, l.kind, r.limit_key, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  CROSS JOIN unstuck_limits l ON l.kind = 'key' AND l.name = '*' AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL) AND r.limit_key <> ''
   AND NOT EXISTS (SELECT 1 FROM unstuck_limits own WHERE (own.concurrency IS NOT NULL OR own.rate IS NOT NULL) AND own.kind = 'key' AND own.name IN (r.limit_key, SUBSTR(r.limit_key, 1, INSTR(r.limit_key, ':')) || '*') AND own.name <> '*'
                      AND own.tenant = l.tenant);

-- How far each limit of a route is used up. Bodies are open attempts, and jobs under a hold, whose old body may still live; they
-- are counted one by one, because SQLite would work out a joined view for all the routes there are. Ask for one route at a time.
-- A rate counts the starts of its window.
CREATE VIEW unstuck_limit_room AS
SELECT l.*,
       CASE WHEN l.concurrency IS NULL THEN 0 ELSE
       (SELECT COUNT(*) FROM unstuck_running b
         WHERE EXISTS (SELECT 1 FROM unstuck_route_limits m
                        WHERE m.route = b.route AND m.limit_id = l.limit_id AND m.bucket = l.bucket))
       + (SELECT COUNT(*) FROM unstuck_holds h CROSS JOIN unstuck_jobs j ON j.id = h.job
           WHERE EXISTS (SELECT 1 FROM unstuck_route_limits m
                          WHERE m.route = j.route AND m.limit_id = l.limit_id AND m.bucket = l.bucket)) END AS running,
       (SELECT COUNT(*) FROM unstuck_starts s
         WHERE s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > (SELECT unstuck_now()) - l.per_us) AS started,
       (SELECT MIN(s.at) FROM unstuck_starts s
         WHERE s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > (SELECT unstuck_now()) - l.per_us) AS first_at
  FROM unstuck_route_limits l;

-- One row per shut gate. A pause that has ended is open without anybody doing anything. free_at: when the next start is due.
CREATE VIEW unstuck_gates AS
SELECT r.id AS route, 'queue_paused' AS code, 0 AS is_limit, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER) AS used, CAST(NULL AS INTEGER) AS most, CAST(NULL AS INTEGER) AS free_at
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'queue' AND p.name = r.queue AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'workflow_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER)
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'workflow' AND p.name = r.workflow AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'tenant_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER)
  FROM unstuck_routes r
  CROSS JOIN unstuck_pauses p ON p.kind = 'tenant' AND p.name = r.tenant AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT route, 'concurrency_limit', 1, kind, bucket, tenant, NULL, NULL, set_by, NULL, running, concurrency, NULL
  FROM unstuck_limit_room
 WHERE running >= concurrency
 UNION ALL
SELECT route, 'rate_limited', 1, kind, bucket, tenant, NULL, NULL, set_by, NULL, started, rate, first_at + per_us
  FROM unstuck_limit_room
 WHERE started >= rate;
