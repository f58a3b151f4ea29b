-- Up to :most jobs in the lines of a tenant's blocked targets, in no order; IN as in counts.
SELECT job AS number
  FROM unstuck_line
 WHERE target IN (SELECT id FROM unstuck_targets WHERE tenant = :tenant AND blocked_by IS NOT NULL)
 LIMIT :most
