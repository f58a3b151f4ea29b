SELECT t.id AS target, t.head, t.head_place, j.route, j.rank
  FROM unstuck_targets t
  JOIN unstuck_jobs j ON j.id = t.head
 WHERE t.id {in :targets BIGINT}
