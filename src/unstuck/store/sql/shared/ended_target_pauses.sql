SELECT t.id AS target
  FROM unstuck_pauses p
  JOIN unstuck_targets t ON t.tenant = p.tenant AND t.name = p.name
 WHERE p.kind = 'target' AND p.until_at <= (SELECT unstuck_now())
 ORDER BY t.id
 LIMIT :batch
