-- Workers whose lease has ended, and their attempts.

-- name: lost_workers
-- Whose lease is over and who has attempts that a sweep may move: a step from worker to worker through the index of what runs, because most
-- rows here are of workers that have nothing any more. Only a look: who acts looks again behind a lock.
WITH RECURSIVE holding (worker) AS (
    SELECT (SELECT r.worker FROM unstuck_running r WHERE r.worker > :after ORDER BY r.worker LIMIT 1)
     UNION ALL
    SELECT (SELECT r.worker FROM unstuck_running r WHERE r.worker > holding.worker ORDER BY r.worker LIMIT 1)
      FROM holding
     WHERE holding.worker IS NOT NULL
)
SELECT w.id, unstuck_now() AS now
  FROM unstuck_workers w
 WHERE w.id IN (SELECT h.worker FROM holding h WHERE h.worker IS NOT NULL)
   AND (w.lease_until <= unstuck_now() - :grace
        OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
   AND EXISTS (SELECT 1 FROM unstuck_running r
                WHERE r.worker = w.id
                  AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'recover' AND q.item = r.job))
 ORDER BY w.id
 LIMIT 100

-- name: silent_workers
-- Whose lease is over, and nobody has marked it yet. Only a look, as that at lost_workers.
SELECT w.id, unstuck_now() AS now
  FROM unstuck_workers w
 WHERE w.ended_at IS NULL AND w.id > :after
   AND (w.lease_until <= unstuck_now() - :grace
        OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
 ORDER BY w.id
 LIMIT :batch

-- name: mark_lost
-- One that drained, or fenced itself, keeps that word: what it still held costs its jobs nothing. A renewal that is under
-- way wins, and whoever else holds a row keeps nobody waiting: it comes with the next sweep.
UPDATE unstuck_workers
   SET state = CASE WHEN state = 'active' THEN 'lost' ELSE state END, ended_at = COALESCE(ended_at, lease_until)
 WHERE id {among}
       SELECT w.id
         FROM unstuck_workers w
        WHERE w.id {in :workers BIGINT} AND (w.state = 'active' OR w.ended_at IS NULL)
          AND (w.lease_until <= unstuck_now() - :grace
               OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
          {lock FOR UPDATE SKIP LOCKED}
       {end}
RETURNING id, name, host, pid, reason

-- name: lock_lost_worker
-- A renewal that is under way wins, and whoever else holds the row keeps nobody waiting: it comes with the next sweep.
SELECT w.id, unstuck_now() AS now
  FROM unstuck_workers w
 WHERE w.id = :worker
   AND (w.lease_until <= unstuck_now() - :grace OR (w.reason IS NOT NULL AND w.state <> 'fenced' AND w.lease_until <= unstuck_now()))
   {lock FOR UPDATE SKIP LOCKED}

-- name: lost_attempts
-- Of one worker, but for those that could not be moved alone.
SELECT a.job
  FROM unstuck_running a
 WHERE a.worker = :worker AND a.job > :after
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'recover' AND q.item = a.job)
 ORDER BY a.job
 LIMIT :batch

-- name: aside_attempts
-- Of the quarantine: those that run, and with whom; the one that has waited longest for a try first.
SELECT q.item AS job, a.worker
  FROM unstuck_quarantine q
  JOIN unstuck_running a ON a.job = q.item
 WHERE q.duty = 'recover'
 ORDER BY q.tried_at, q.item
 LIMIT :batch
