-- Single things that could not be written.

-- name: quarantine
-- Set these aside, or count one more failure; is_new tells the first time from the later ones.
INSERT INTO unstuck_quarantine AS q (duty, item, since_at, tried_at, tries, error, by)
SELECT :duty, item, now.at, now.at, 1, error, :by
  FROM {rows :rows AS r (item BIGINT, error TEXT)}
 CROSS JOIN (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
 ORDER BY item
ON CONFLICT (duty, item) DO UPDATE
   SET tried_at = excluded.tried_at, tries = q.tries + 1, error = excluded.error, by = excluded.by
RETURNING item, tries = 1 AS is_new

-- name: quarantine_due
-- Whom to try again, alone: the one that has waited longest for it first. The number of entries is that of troubles, not of jobs.
SELECT item FROM unstuck_quarantine WHERE duty = :duty ORDER BY tried_at, item LIMIT :batch

-- name: quarantined
SELECT q.duty, q.item, q.since_at, q.tried_at, q.tries, q.error, q.by,
       j.uid, j.workflow, t.name AS target, COALESCE(j.tenant, t.tenant) AS tenant
  FROM unstuck_quarantine q
  LEFT JOIN unstuck_jobs j ON j.id = q.item AND q.duty <> 'target'
  LEFT JOIN unstuck_targets t ON t.id = q.item AND q.duty = 'target'
 WHERE (q.duty, q.item) > (:after_duty, :after_item)
   AND (CAST(:tenant AS TEXT) IS NULL OR COALESCE(j.tenant, t.tenant) = CAST(:tenant AS TEXT))
   AND (CAST(:job AS TEXT) IS NULL OR j.uid = CAST(:job AS TEXT))
 ORDER BY q.duty, q.item
 LIMIT :most

-- name: retry_quarantined
UPDATE unstuck_quarantine
   SET tried_at = 0
 WHERE (CAST(:duty AS TEXT) IS NULL OR duty = CAST(:duty AS TEXT))
   AND (CAST(:item AS BIGINT) IS NULL OR item = CAST(:item AS BIGINT))

-- name: stale_quarantine
-- Set aside for something that has been done since, or that nobody has to do any more. Some at a time.
SELECT q.duty, q.item
  FROM unstuck_quarantine q
  LEFT JOIN unstuck_running a ON a.job = q.item
 WHERE (q.duty IN ('settle', 'recover', 'overdue') AND (a.job IS NULL OR a.claimed_at > q.since_at))
    OR (q.duty IN ('claim', 'start', 'expire', 'orphan', 'blacklist')
        AND (a.job IS NOT NULL
             OR EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = q.item)
             OR NOT EXISTS (SELECT 1 FROM unstuck_jobs j WHERE j.id = q.item)))
    OR (q.duty = 'children'
        AND NOT EXISTS (SELECT 1 FROM unstuck_children c WHERE c.child = q.item AND c.left_at IS NOT NULL))
 LIMIT :batch

-- name: take_quarantined
-- Taken before they are tried: whoever leaves one out of a batch holds its row, so a try comes after that batch and sees all it knew.
DELETE FROM unstuck_quarantine
 WHERE duty = :duty AND item {among}
       SELECT item
         FROM unstuck_quarantine
        WHERE duty = :duty AND item {in :items BIGINT}
        ORDER BY item
          {lock FOR UPDATE SKIP LOCKED}{end}
RETURNING item

-- name: lock_quarantined
-- Those of these items that are set aside and whom nobody tries again at this instant: until the commit nobody does.
SELECT item
  FROM unstuck_quarantine
 WHERE duty = :duty AND item {in :items BIGINT}
 ORDER BY item
   {lock FOR SHARE SKIP LOCKED}

-- name: leave_quarantine
DELETE FROM unstuck_quarantine WHERE duty = :duty AND item = :item
