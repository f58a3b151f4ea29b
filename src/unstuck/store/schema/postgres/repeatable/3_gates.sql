-- The shut gates of a route, a row each: pauses, limits, the blacklist. A pause that has ended is open without anybody doing anything.
-- free_at: when the next start is due. probe: the one job that this gate lets through.
CREATE OR REPLACE VIEW unstuck_gates AS
SELECT r.id AS route, 'queue_paused' AS code, 0 AS is_limit, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT) AS used, CAST(NULL AS BIGINT) AS most, CAST(NULL AS BIGINT) AS free_at,
       CAST(NULL AS BIGINT) AS probe
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'queue' AND p.name = r.queue AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'workflow_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'workflow' AND p.name = r.workflow AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT r.id, 'tenant_paused', 0, p.kind, p.name, p.tenant, p.since_at, p.until_at, p.by, p.reason,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
  FROM unstuck_routes r
  JOIN unstuck_pauses p ON p.kind = 'tenant' AND p.name = r.tenant AND p.tenant IN (r.tenant, '*')
 WHERE p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())
 UNION ALL
SELECT l.route, gate.code, 1, l.kind, CASE l.kind WHEN 'workflow_key' THEN l.name ELSE l.bucket END, l.tenant, NULL, NULL, l.set_by, NULL,
       CASE gate.code WHEN 'rate_limited' THEN l.started ELSE l.running END,
       CASE gate.code WHEN 'rate_limited' THEN l.rate ELSE l.concurrency END,
       CASE gate.code WHEN 'rate_limited' THEN l.first_at + l.per_us END, CAST(NULL AS BIGINT)
  FROM unstuck_limit_room l
  JOIN (SELECT 'concurrency_limit' AS code UNION ALL SELECT 'rate_limited') AS gate
    ON CASE gate.code WHEN 'rate_limited' THEN l.started >= l.rate ELSE l.running >= l.concurrency END
 UNION ALL
SELECT r.id, 'blacklisted', 0, 'workflow', b.workflow, b.tenant, b.blacklisted_at, CAST(NULL AS BIGINT), b.blacklisted_by, b.reason,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), b.probe
  FROM unstuck_routes r
  JOIN unstuck_blacklist b ON b.workflow = r.workflow AND b.tenant IN (r.tenant, '*')
 WHERE b.removed_at IS NULL;

-- Whether anything is paused, blacklisted or limited at all: asked once per look and per claim, whatever there is.
CREATE OR REPLACE VIEW unstuck_gates_in_use AS
SELECT EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target')
       OR (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS has_pauses,
       EXISTS (SELECT 1 FROM unstuck_limits WHERE concurrency IS NOT NULL OR rate IS NOT NULL) AS has_limits;

-- What a claim may take from a route: NULL everything, 0 nothing, else this one job.
CREATE OR REPLACE FUNCTION unstuck_passes(asked BIGINT, counted BOOLEAN, guarded BOOLEAN) RETURNS BIGINT LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    low  BIGINT;
    high BIGINT;
BEGIN
    IF guarded OR EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target') THEN
        SELECT MIN(COALESCE(probe, 0)), MAX(COALESCE(probe, 0)) INTO low, high
          FROM unstuck_gates WHERE route = asked AND is_limit = 0;
        IF low <> high THEN
            RETURN 0;
        END IF;
    END IF;
    IF NOT counted AND EXISTS (SELECT 1 FROM unstuck_limits) THEN
        IF EXISTS (SELECT 1 FROM unstuck_route_limits WHERE route = asked) THEN
            RETURN 0;
        END IF;
    END IF;
    RETURN low;
END
$$;
