-- As count_stucks, by tenants; under the lock of the breaker that they have in common.
SELECT s.tenant, CASE WHEN s.is_proven = 0 THEN 'freeze' ELSE s.kind END AS kind, COUNT(*) AS marks
  FROM unstuck_breakers b
  JOIN unstuck_stucks s ON s.tenant = b.tenant AND s.workflow = b.workflow AND s.id > b.cleared_upto
 WHERE b.workflow = :workflow AND s.at > (SELECT unstuck_now()) - CAST(:span AS BIGINT)
 GROUP BY s.tenant, s.kind, s.is_proven
