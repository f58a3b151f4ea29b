-- Up to :most jobs in the lines of a tenant's blocked targets, in no order; LATERAL and ORDER BY as in counts.
SELECT waiting.job AS number
  FROM (SELECT id FROM unstuck_targets WHERE tenant = :tenant AND blocked_by IS NOT NULL LIMIT :most) AS blocked
 CROSS JOIN LATERAL (SELECT l.job FROM unstuck_line l WHERE l.target = blocked.id ORDER BY l.place LIMIT :most) AS waiting
 LIMIT :most
