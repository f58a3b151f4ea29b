-- The limits that a claim from a route must count. bucket: what such a limit counts together; of a workflow_key, whose name is the workflow's,
-- only that workflow's jobs. A row of one's own wins over that
-- of the family, and this over '*'.
DROP VIEW IF EXISTS unstuck_route_limits;
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
SELECT r.id, l.kind, r.limit_key, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  CROSS JOIN unstuck_limits l ON l.kind = 'workflow_key' AND l.name = r.workflow AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL) AND r.limit_key <> ''
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

DROP VIEW IF EXISTS unstuck_limit_room;
CREATE VIEW unstuck_limit_room AS
SELECT l.*,
       CASE WHEN l.concurrency IS NULL THEN 0 ELSE
       (WITH RECURSIVE busy (route) AS (
            SELECT MIN(route) FROM unstuck_running
             UNION ALL
            SELECT (SELECT MIN(a.route) FROM unstuck_running a WHERE a.route > busy.route) FROM busy WHERE busy.route IS NOT NULL)
        SELECT COALESCE(SUM(CASE WHEN l.tenant IN (m.tenant, '*')
                                  AND (l.kind <> 'workflow_key' OR l.name = m.workflow)
                                  AND l.bucket = CASE l.kind WHEN 'queue' THEN m.queue WHEN 'workflow' THEN m.workflow
                                                             WHEN 'tenant' THEN m.tenant ELSE m.limit_key END
                                 THEN (SELECT COUNT(*) FROM unstuck_running a WHERE a.route = m.id) END), 0)
          FROM busy CROSS JOIN unstuck_routes m ON m.id = busy.route)
       + (SELECT COUNT(CASE WHEN l.tenant IN (m.tenant, '*')
                             AND (l.kind <> 'workflow_key' OR l.name = m.workflow)
                             AND l.bucket = CASE l.kind WHEN 'queue' THEN m.queue WHEN 'workflow' THEN m.workflow
                                                        WHEN 'tenant' THEN m.tenant ELSE m.limit_key END
                            THEN 1 END)
            FROM unstuck_body_marks h CROSS JOIN unstuck_jobs j ON j.id = h.job CROSS JOIN unstuck_routes m ON m.id = j.route) END AS running,
       (SELECT COALESCE(SUM(s.starts), 0) FROM unstuck_starts s
         WHERE s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > (SELECT unstuck_now()) - l.per_us) AS started,
       (SELECT MIN(later.at)
          FROM (SELECT s.at, SUM(SUM(s.starts)) OVER (ORDER BY s.at DESC) - SUM(s.starts) AS left_over
                  FROM unstuck_starts s
                 WHERE s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > (SELECT unstuck_now()) - l.per_us
                 GROUP BY s.at) AS later
         WHERE later.left_over < l.rate) AS first_at
  FROM unstuck_route_limits l;
