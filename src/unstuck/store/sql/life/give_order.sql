-- Nothing for a worker whose lease is over: nobody would read it. One that is open already is that order, and keeps its giver.
INSERT INTO unstuck_orders (worker, kind, subject, by, given_at)
SELECT w.id, :kind, :subject, :by, unstuck_now()
  FROM unstuck_workers w
 WHERE w.id = :worker AND w.lease_until > unstuck_now()
ON CONFLICT (worker, kind, subject) WHERE done_at IS NULL DO UPDATE SET by = unstuck_orders.by
RETURNING *
