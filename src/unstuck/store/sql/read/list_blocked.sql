-- Up to :most jobs in the lines of a tenant's blocked targets, in no order; LATERAL and ORDER BY as in counts.
SELECT l.job AS number
  FROM (SELECT id FROM unstuck_targets WHERE tenant = :tenant AND blocked_by IS NOT NULL LIMIT :most) AS blocked
  {some_by_key unstuck_line AS l ON l.target = blocked.id ORDER BY l.place LIMIT :most}
 LIMIT :most
