-- A worker's own row, and what it is granted.

-- name: register_worker
INSERT INTO unstuck_workers (incarnation, name, host, boot_id, pid_namespace, pid, pid_start, queues, code_version,
                             started_at, beat_at, lease_until, info, boot_at)
SELECT :incarnation, :name, :host, :boot_id, :pid_namespace, :pid, :pid_start, :queues, :code_version,
       clock.now, clock.now, clock.now + :lease, :info, CAST(:boot_at AS BIGINT)
  FROM (SELECT unstuck_now() AS now) AS clock
 WHERE NOT EXISTS (SELECT 1 FROM unstuck_workers WHERE incarnation = :incarnation)
ON CONFLICT (incarnation) DO NOTHING

-- name: worker_by_incarnation
SELECT w.*, 0 AS running FROM unstuck_workers w WHERE w.incarnation = :incarnation

-- name: worker_named
SELECT name, host, code_version FROM unstuck_workers WHERE id = :worker

-- name: worker_info
SELECT info FROM unstuck_workers WHERE id = :worker

-- name: renew_lease
-- Between :earliest and :latest: a renewal by a clock that has leapt would be one to the wrong time. The clock is read
-- once: it may leap between two readings of one statement. boot_at: see leaps. Of a worker at a distance it is not known.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
)
UPDATE unstuck_workers
   SET beat_at = clock.now, lease_until = clock.now + :lease, state = :state,
       info = COALESCE(CAST(:info AS TEXT), info),
       boot_at = CASE WHEN boot_at IS NULL THEN NULL ELSE CAST(:boot_at AS BIGINT) END
  FROM clock
 WHERE id = :worker AND lease_until > clock.now AND state NOT IN ('lost', 'fenced', 'gone')
   AND clock.now BETWEEN CAST(:earliest AS BIGINT) AND CAST(:latest AS BIGINT)
RETURNING lease_until, state, beat_at AS now

-- name: granted
SELECT job, token, claim, request, request_reason, claimed_at, started_at FROM unstuck_running WHERE worker = :worker

-- name: asked
SELECT job, token, claim, request, request_reason
  FROM unstuck_running
 WHERE worker = :worker AND request IS NOT NULL

-- name: holder
-- Of one job: no index is asked for more than a row.
SELECT a.worker, a.job, a.token, a.claim
  FROM unstuck_jobs j
  JOIN unstuck_running a ON a.job = j.id
 WHERE j.uid = :uid AND j.tenant = :tenant

-- name: leave
UPDATE unstuck_workers
   SET state = 'gone', lease_until = unstuck_now(), ended_at = COALESCE(ended_at, unstuck_now())
 WHERE id = :worker AND state <> 'gone'
RETURNING id, name, host, pid

-- name: fence_worker
-- The lease goes on: its bodies may live as long as it does, unless a neighbour sees that they are gone.
UPDATE unstuck_workers SET state = 'fenced', reason = :reason WHERE id = :worker AND state IN ('active', 'draining')

-- name: expire_worker
-- The reason also says that its processes were seen to be gone: recovery then waits for no further grace. One that had fenced
-- itself is gone now, and what it said stays the reason.
UPDATE unstuck_workers
   SET lease_until = CASE WHEN lease_until > unstuck_now() THEN unstuck_now() ELSE lease_until END,
       reason = CASE WHEN state = 'fenced' AND reason IS NOT NULL THEN reason ELSE :reason END,
       state = CASE WHEN state = 'fenced' THEN 'gone' ELSE state END
 WHERE id = :worker AND lease_until = :seen
