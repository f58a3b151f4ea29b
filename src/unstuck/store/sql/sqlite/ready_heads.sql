SELECT t.id AS target, t.head, t.head_place, j.route, j.rank
  FROM json_each(:targets) AS r
  CROSS JOIN unstuck_targets t ON t.id = r.value
  JOIN unstuck_jobs j ON j.id = t.head
