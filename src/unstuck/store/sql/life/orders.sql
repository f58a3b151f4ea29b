-- What people ask of a worker.

-- name: give_order
-- Nothing for a worker whose lease is over: nobody would read it. One that is open already is that order, and keeps its giver.
INSERT INTO unstuck_orders (worker, kind, subject, by, given_at)
SELECT w.id, :kind, :subject, :by, unstuck_now()
  FROM unstuck_workers w
 WHERE w.id = :worker AND w.lease_until > unstuck_now()
ON CONFLICT (worker, kind, subject) WHERE done_at IS NULL DO UPDATE SET by = unstuck_orders.by
RETURNING *

-- name: open_orders
SELECT * FROM unstuck_orders WHERE worker = :worker AND done_at IS NULL ORDER BY id

-- name: order_given
SELECT * FROM unstuck_orders WHERE id = :number

-- name: answer_order
UPDATE unstuck_orders
   SET done_at = unstuck_now(), answer = :answer, is_refused = :refused
 WHERE id = :number AND done_at IS NULL

-- name: forget_orders
DELETE FROM unstuck_orders
 WHERE id {among}
       SELECT id FROM unstuck_orders WHERE given_at <= (SELECT unstuck_now() - :retention) ORDER BY given_at LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}
