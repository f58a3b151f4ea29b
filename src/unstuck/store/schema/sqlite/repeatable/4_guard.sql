-- Jobs in the queue of a workflow that is shut out: ready, or in the line of their target.
DROP VIEW IF EXISTS unstuck_at_the_gate;
CREATE VIEW unstuck_at_the_gate AS
SELECT b.id AS entry, r.id AS route, w.job
  FROM unstuck_blacklist b
  CROSS JOIN unstuck_routes r ON r.workflow = b.workflow AND (b.tenant = '*' OR r.tenant = b.tenant)
  CROSS JOIN unstuck_ready w ON w.route = r.id
 WHERE b.removed_at IS NULL AND (b.probe IS NULL OR b.probe <> w.job)
 UNION ALL
SELECT b.id, r.id, w.job
  FROM unstuck_blacklist b
  CROSS JOIN unstuck_routes r ON r.workflow = b.workflow AND (b.tenant = '*' OR r.tenant = b.tenant)
  CROSS JOIN unstuck_line w ON w.route = r.id
 WHERE b.removed_at IS NULL AND (b.probe IS NULL OR b.probe <> w.job);
