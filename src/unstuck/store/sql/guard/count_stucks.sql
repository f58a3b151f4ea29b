-- Under the breaker's lock, in a statement after it: this snapshot shows what everybody before us has written.
SELECT CASE WHEN s.is_proven = 0 THEN 'freeze' ELSE s.kind END AS kind, COUNT(*) AS marks
  FROM unstuck_breakers b
  JOIN unstuck_stucks s ON s.tenant = b.tenant AND s.workflow = b.workflow AND s.id > b.cleared_upto
 WHERE b.tenant = :tenant AND b.workflow = :workflow AND s.at > (SELECT unstuck_now()) - CAST(:span AS BIGINT)
 GROUP BY s.kind, s.is_proven
