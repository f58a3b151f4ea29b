-- What was claimed for workers at a distance: see model/offers.py for how their ids are spelled.

-- name: worker_incarnation
SELECT incarnation FROM unstuck_workers WHERE id = :worker

-- name: standing_of_key
-- By its signs, not by the order of a language, in which a point may not count.
SELECT COUNT(*) AS number
  FROM (SELECT 1
          FROM unstuck_workers
         WHERE ended_at IS NULL AND SUBSTR(incarnation, 1, CAST(:length AS INTEGER)) = :beginning
           AND incarnation <> :but
         LIMIT :most) AS few

-- name: payload_of
SELECT j.payload
  FROM unstuck_running r
  JOIN unstuck_jobs j ON j.id = r.job
 WHERE r.job = :job AND r.token = :token AND r.claim = :claim

-- name: acknowledge_offers
UPDATE unstuck_running
   SET claim = :claim
 WHERE worker = :worker AND claim = :offered
   AND (job, token) IN (SELECT r.job, r.token FROM {rows :rows AS r (job BIGINT, token BIGINT)})

-- name: attempts_of_claim
SELECT job, token FROM unstuck_running WHERE worker = :worker AND claim = :claim

-- name: overdue_offers
-- Workers at a distance are few, and so is what each of them holds: no index is kept for this.
SELECT r.worker, r.job, r.token, r.claim
  FROM unstuck_workers w
  JOIN unstuck_running r ON r.worker = w.id
 WHERE w.ended_at IS NULL AND substr(w.incarnation, 9, 1) = '.' AND substr(r.claim, length(r.claim), 1) = '~'
   AND (CAST(:worker AS BIGINT) IS NULL OR w.id = CAST(:worker AS BIGINT))
   AND r.claimed_at <= (SELECT unstuck_now()) - CAST(:overdue AS BIGINT)
 ORDER BY r.claimed_at, r.job
 LIMIT :batch

-- name: asked_of_workers
SELECT worker, job, token, claim, request, request_reason
  FROM unstuck_running
 WHERE worker {in :workers BIGINT} AND request IS NOT NULL
 ORDER BY worker, job

-- name: orders_of_workers
SELECT * FROM unstuck_orders WHERE worker {in :workers BIGINT} AND done_at IS NULL ORDER BY id
