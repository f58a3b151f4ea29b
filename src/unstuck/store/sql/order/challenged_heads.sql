-- Heads that were never started and have somebody with a higher priority behind them; whether they are still unclaimed shows
-- when their ready row is taken.
SELECT t.id AS target, t.head, t.head_place, j.route, j.rank
  FROM unstuck_targets t
  JOIN unstuck_jobs j ON j.id = t.head
 WHERE t.id {in :targets BIGINT} AND t.head_place > :first AND t.blocked_by IS NULL
   AND (SELECT l.place FROM unstuck_line l WHERE l.target = t.id ORDER BY l.place, l.job LIMIT 1) < t.head_place
