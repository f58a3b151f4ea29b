DROP VIEW IF EXISTS unstuck_gates;
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
SELECT route, 'concurrency_limit', 1, kind, CASE kind WHEN 'workflow_key' THEN name ELSE bucket END, tenant, NULL, NULL, set_by, NULL, running, concurrency, NULL, NULL
  FROM unstuck_limit_room
 WHERE running >= concurrency
 UNION ALL
SELECT route, 'rate_limited', 1, kind, CASE kind WHEN 'workflow_key' THEN name ELSE bucket END, tenant, NULL, NULL, set_by, NULL, started, rate, first_at + per_us, NULL
  FROM unstuck_limit_room
 WHERE started >= rate
 UNION ALL
SELECT r.id, 'blacklisted', 0, 'workflow', b.workflow, b.tenant, b.blacklisted_at, CAST(NULL AS INTEGER), b.blacklisted_by, b.reason,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), b.probe
  FROM unstuck_routes r
  CROSS JOIN unstuck_blacklist b ON b.workflow = r.workflow AND b.tenant IN (r.tenant, '*')
 WHERE b.removed_at IS NULL;

-- Whether anything is paused, blacklisted or limited at all: asked once per look and per claim, whatever there is.
DROP VIEW IF EXISTS unstuck_gates_in_use;
CREATE VIEW unstuck_gates_in_use AS
SELECT EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target')
       OR (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS has_pauses,
       EXISTS (SELECT 1 FROM unstuck_limits WHERE concurrency IS NOT NULL OR rate IS NOT NULL) AS has_limits;
