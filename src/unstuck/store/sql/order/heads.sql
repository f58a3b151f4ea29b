-- Targets and whose turn it is.

-- name: lock_targets
SELECT id FROM unstuck_targets WHERE id {in :targets BIGINT} ORDER BY id {lock FOR NO KEY UPDATE}

-- name: lock_free_targets
-- Out of the order in which locks are taken, after jobs: so it waits for nobody.
SELECT id FROM unstuck_targets WHERE id {in :targets BIGINT} ORDER BY id {lock FOR NO KEY UPDATE SKIP LOCKED}

-- name: known_targets
SELECT id FROM unstuck_targets WHERE id {in :targets BIGINT}

-- name: target_named
SELECT id FROM unstuck_targets WHERE tenant = :tenant AND name = :name

-- name: target_number
SELECT id FROM unstuck_targets WHERE tenant = :tenant AND name = :name

-- name: targets_of
SELECT DISTINCT target FROM unstuck_jobs WHERE id {in :jobs BIGINT} AND target IS NOT NULL

-- name: challenged_heads
-- Heads that were never started and have somebody with a higher priority behind them; whether they are still unclaimed shows
-- when their ready row is taken.
SELECT t.id AS target, t.head, t.head_place, j.route, j.rank
  FROM unstuck_targets t
  JOIN unstuck_jobs j ON j.id = t.head
 WHERE t.id {in :targets BIGINT} AND t.head_place > :first AND t.blocked_by IS NULL
   AND (SELECT l.place FROM unstuck_line l WHERE l.target = t.id ORDER BY l.place, l.job LIMIT 1) < t.head_place

-- name: ready_heads
SELECT t.id AS target, t.head, t.head_place, j.route, j.rank
  FROM unstuck_targets t
  JOIN unstuck_jobs j ON j.id = t.head
 WHERE t.id {in :targets BIGINT}

-- name: still_ready
SELECT r.job
  FROM {rows :rows AS r (route BIGINT, rank BIGINT, job BIGINT)}
 WHERE (SELECT 1 FROM unstuck_ready t WHERE t.route = r.route AND t.rank = r.rank AND t.job = r.job) = 1
