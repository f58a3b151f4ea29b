SELECT t.id AS target, (SELECT unstuck_now()) AS now
  FROM unstuck_pauses p
  JOIN unstuck_targets t ON t.tenant = p.tenant AND t.name = p.name
 WHERE p.kind = 'target' AND p.until_at <= (SELECT unstuck_now()) AND t.id > :after
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'target' AND q.item = t.id)
 ORDER BY t.id
 LIMIT :batch
