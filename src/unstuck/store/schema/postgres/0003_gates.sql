-- The gates of a route: what shuts all of its jobs out for a while. `fronts`, the claim and `why` read the same view.

-- When a worker whose lease held was last seen to know it. seen_at is when it was registered, which decides who is newest.
ALTER TABLE unstuck_workflows ADD COLUMN known_at BIGINT;
ALTER TABLE unstuck_workflows ADD COLUMN limit_key TEXT;

-- The limits that a claim from a route must count. bucket: what such a limit counts together. A row of one's own wins over that
-- of the family, and this over '*'.
CREATE VIEW unstuck_route_limits AS
SELECT r.id AS route, l.kind AS kind, r.queue AS bucket, l.id AS limit_id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  JOIN unstuck_limits l ON l.kind = 'queue' AND l.name = r.queue AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
 UNION ALL
SELECT r.id, l.kind, r.workflow, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  JOIN unstuck_limits l ON l.kind = 'workflow' AND l.name = r.workflow AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
 UNION ALL
SELECT r.id, l.kind, r.tenant, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  JOIN unstuck_limits l ON l.kind = 'tenant' AND l.name = r.tenant AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
 UNION ALL
SELECT r.id, l.kind, r.tenant, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  JOIN unstuck_limits l ON l.kind = 'tenant' AND l.name = '*' AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
   AND NOT EXISTS (SELECT 1 FROM unstuck_limits own WHERE (own.concurrency IS NOT NULL OR own.rate IS NOT NULL) AND own.kind = 'tenant' AND own.name = r.tenant)
 UNION ALL
SELECT r.id, l.kind, r.limit_key, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  JOIN unstuck_limits l ON l.kind = 'key' AND l.name = r.limit_key AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL) AND r.limit_key <> ''
 UNION ALL
SELECT r.id, l.kind, r.limit_key, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  JOIN unstuck_limits l ON l.kind = 'key' AND l.name = SPLIT_PART(r.limit_key, ':', 1) || ':*' AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL) AND r.limit_key LIKE '%:%'
   AND NOT EXISTS (SELECT 1 FROM unstuck_limits own WHERE (own.concurrency IS NOT NULL OR own.rate IS NOT NULL) AND own.kind = 'key' AND own.name = r.limit_key AND own.tenant = l.tenant)
 UNION ALL
SELECT r.id, l.kind, r.limit_key, l.id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by
  FROM unstuck_routes r
  JOIN unstuck_limits l ON l.kind = 'key' AND l.name = '*' AND l.tenant IN (r.tenant, '*')
 WHERE (l.concurrency IS NOT NULL OR l.rate IS NOT NULL) AND r.limit_key <> ''
   AND NOT EXISTS (SELECT 1 FROM unstuck_limits own WHERE (own.concurrency IS NOT NULL OR own.rate IS NOT NULL) AND own.kind = 'key' AND own.name IN (r.limit_key, SPLIT_PART(r.limit_key, ':', 1) || ':*') AND own.name <> '*'
                      AND own.tenant = l.tenant);

-- How many bodies a limit counts: open attempts, and jobs under a hold, whose old body may still live. Nothing is read while
-- there are no limits.
CREATE VIEW unstuck_limit_use AS
SELECT l.limit_id, l.bucket, CAST(SUM(busy.jobs) AS BIGINT) AS jobs
  FROM (SELECT body.route, COUNT(*) AS jobs
          FROM (SELECT route FROM unstuck_running
                 UNION ALL
                SELECT j.route FROM unstuck_holds h JOIN unstuck_jobs j ON j.id = h.job) AS body
         WHERE EXISTS (SELECT 1 FROM unstuck_limits WHERE concurrency IS NOT NULL)
         GROUP BY body.route) AS busy
  -- OFFSET 0: asked route by route, never for all the routes there are.
  CROSS JOIN LATERAL (SELECT limit_id, bucket FROM unstuck_route_limits WHERE route = busy.route OFFSET 0) AS l
 GROUP BY l.limit_id, l.bucket;

-- How far each limit of a route is used up. A rate counts the starts of its window.
CREATE VIEW unstuck_limit_room AS
SELECT l.*, COALESCE(used.jobs, 0) AS running,
       (SELECT COUNT(*) FROM unstuck_starts s
         WHERE s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > (SELECT unstuck_now()) - l.per_us) AS started,
       (SELECT MIN(s.at) FROM unstuck_starts s
         WHERE s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > (SELECT unstuck_now()) - l.per_us) AS first_at
  FROM unstuck_route_limits l
  LEFT JOIN unstuck_limit_use used ON used.limit_id = l.limit_id AND used.bucket = l.bucket;

-- One row per shut gate. A pause that has ended is open without anybody doing anything. free_at: when the next start is due.
CREATE VIEW unstuck_gates AS
SELECT r.id AS route, 'queue_paused' AS code, 0 AS is_limit, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT) AS used, CAST(NULL AS BIGINT) AS most, CAST(NULL AS BIGINT) AS free_at
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'queue' AND p.name = r.queue AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'workflow_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'workflow' AND p.name = r.workflow AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'tenant_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'tenant' AND p.name = r.tenant AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT l.route, gate.code, 1, l.kind, l.bucket, l.tenant, NULL, NULL, l.set_by, NULL,
       CASE gate.code WHEN 'rate_limited' THEN l.started ELSE l.running END,
       CASE gate.code WHEN 'rate_limited' THEN l.rate ELSE l.concurrency END,
       CASE gate.code WHEN 'rate_limited' THEN l.first_at + l.per_us END
  FROM unstuck_limit_room l
  JOIN (SELECT 'concurrency_limit' AS code UNION ALL SELECT 'rate_limited') AS gate
    ON CASE gate.code WHEN 'rate_limited' THEN l.started >= l.rate ELSE l.running >= l.concurrency END;

-- What the claim asks of each of its shares. A function, because it is planned once per session and not with every claim, and
-- because nothing but two empty tables is read where nothing is paused or limited. counted: this transaction holds the locks of
-- the limits and has counted under them.
CREATE FUNCTION unstuck_is_shut(asked BIGINT, counted BOOLEAN) RETURNS BOOLEAN LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target') THEN
        IF EXISTS (SELECT 1 FROM unstuck_gates WHERE route = asked AND is_limit = 0) THEN
            RETURN TRUE;
        END IF;
    END IF;
    IF NOT counted AND EXISTS (SELECT 1 FROM unstuck_limits) THEN
        RETURN EXISTS (SELECT 1 FROM unstuck_route_limits WHERE route = asked);
    END IF;
    RETURN FALSE;
END
$$;
